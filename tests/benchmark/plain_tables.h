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
// optimizer, which must have no slots. Calls for different elements may run at
// the same time.
class PlainVariables {
 public:
  explicit PlainVariables(const Contents& contents);

  size_t size() const { return values_.size(); }
  absl::Span<float> values(size_t variable) {
    return absl::MakeSpan(values_[variable]);
  }
  // Applies `gradient` to elements [first, first + count). `gradient` may have
  // any alignment.
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

  // `gradients` and `values` hold ids.size() rows.
  virtual void Push(absl::Span<const uint64_t> ids, const float* gradients) = 0;
  virtual void Pull(absl::Span<const uint64_t> ids, float* values) = 0;
};

enum class RowStore {
  // A std::unordered_map from id to a vector: the simplest table.
  kUnorderedMap,
  // Keys and rows in two arrays, at the same index; linear probing; the next
  // few rows are prefetched; the table doubles all at once when it is half
  // full. The bound for one thread that has only the table to care for.
  kOpenAddressing,
};

// Makes a table with SGD or Adagrad, 16 or 64 wide, as `contents` says.
std::unique_ptr<PlainRows> MakePlainRows(const Contents& contents,
                                         RowStore store);

}  // namespace parasol

#endif  // PARASOL_TESTS_BENCHMARK_PLAIN_TABLES_H_
