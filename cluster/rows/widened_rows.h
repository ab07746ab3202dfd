#ifndef PARASOL_CLUSTER_ROWS_WIDENED_ROWS_H_
#define PARASOL_CLUSTER_ROWS_WIDENED_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/rows/row_block.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {

// Returns the key of the random bits of one table, the same in every process.
uint64_t RoundingKeyOf(uint64_t seed, absl::string_view table);

// Returns the key of the random bits by which one update rounds the values of a
// row. It depends on the table, the update and the id alone: whatever process
// makes the update, once or again, gets the same bits.
uint64_t RoundingKeyOf(uint64_t table_key, int64_t iterations, uint64_t hash);

// Loads the first `words` words of each row that is not null into the first
// cache. Loads of many rows are under way together, where a loop that widens
// one row after the other would wait for each.
void LoadRows(absl::Span<const float* const> rows, size_t words);

// Rows of bfloat16 values while one update of their table changes them: the
// optimizer sees float32 copies, a few at a time, whose values are rounded at
// random when they go back. Not thread-safe.
class WidenedRows {
 public:
  // `iterations`: updates that the table has had. All must outlive the object.
  WidenedRows(const RowLayout& layout, const Optimizer& optimizer,
              uint64_t table_key, int64_t iterations);
  WidenedRows(const WidenedRows&) = delete;
  WidenedRows& operator=(const WidenedRows&) = delete;

  // Adds a row, whose id has this hash. Its gradient is `width` float32, at any
  // alignment; null: the push does not have the row. All rows of an object have
  // gradients, or none.
  void Add(uint64_t hash, float* row, const std::byte* gradient = nullptr);
  // Changes the rows that have not been changed yet. Call it behind the last
  // Add().
  void Apply();

 private:
  // Elements of rows that are widened together, unless one row has more: they
  // stay in the first cache.
  static constexpr size_t kElements = 4096;
  static constexpr size_t kRows = 128;

  const RowLayout& layout_;
  const Optimizer& optimizer_;
  const uint64_t table_key_;
  const int64_t iterations_;
  const size_t most_;  // rows at a time
  size_t count_ = 0;
  std::array<uint64_t, kRows> hashes_;
  std::array<float*, kRows> rows_;
  std::array<const std::byte*, kRows> gradients_;
  std::array<float*, kRows> widened_;
  std::array<float, kElements> elements_;
  std::unique_ptr<float[]> large_row_;  // null: elements_ has the rows
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_WIDENED_ROWS_H_
