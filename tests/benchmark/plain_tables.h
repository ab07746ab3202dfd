#ifndef PARASOL_TESTS_BENCHMARK_PLAIN_TABLES_H_
#define PARASOL_TESTS_BENCHMARK_PLAIN_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "ml/optimizer/optimizer.h"
#include "tests/benchmark/contents.h"

namespace parasol {

// The variables of a contender that is not Parasol, updated by Parasol's
// optimizer, one without slots. Calls for different elements may run at the
// same time.
class PlainVariables {
 public:
  explicit PlainVariables(const Contents& contents);

  size_t size() const { return values_.size(); }
  absl::Span<float> values(size_t variable) {
    return absl::MakeSpan(values_[variable]);
  }
  // `gradient` may be at any alignment.
  void Apply(size_t variable, size_t first, size_t count, const void* gradient);

 private:
  std::vector<std::vector<float>> values_;
  std::unique_ptr<const Optimizer> optimizer_;
};

// A sparse table of a contender that is not Parasol. New rows are zeros.
// Not thread-safe.
class PlainRows {
 public:
  virtual ~PlainRows() = default;

  // `gradients` and `values` are ids.size() rows.
  virtual void Push(absl::Span<const uint64_t> ids, const float* gradients) = 0;
  virtual void Pull(absl::Span<const uint64_t> ids, float* values) = 0;
};

enum class RowStore {
  // std::unordered_map from id to a vector: what one writes first.
  kUnorderedMap,
  // Keys and rows in two arrays, at the same place; linear probing; the rows a
  // few ahead are prefetched; twice as large when half full, all at once. What
  // one thread can do if nothing else is asked of the table.
  kOpenAddressing,
};

// SGD or Adagrad, 16 or 64 wide, as `contents` says.
std::unique_ptr<PlainRows> MakePlainRows(const Contents& contents,
                                         RowStore store);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PLAIN_TABLES_H_
