#ifndef PARASOL_WORKER_LOCAL_ROW_NUMBERS_H_
#define PARASOL_WORKER_LOCAL_ROW_NUMBERS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"
#include "cluster/rows/row_arena.h"
#include "cluster/rows/row_index.h"

namespace parasol {

// The numbers of a table's rows by their ids: 0, 1, … in the order in which
// rows are made. Not thread-safe.
class RowNumbers {
 public:
  static constexpr size_t kMaxRows = std::numeric_limits<int32_t>::max();

  RowNumbers();

  // Writes the numbers of the rows of `ids`, which are distinct, to `numbers`,
  // which is as long as `ids`. Rows that are missing have those that the next
  // Add() of missing() gives them.
  void Find(absl::Span<const uint64_t> ids, absl::Span<int32_t> numbers);
  // The ids that the last Find() has missed. Valid until the next one.
  absl::Span<const uint64_t> missing() const { return missing_; }

  // Adds rows, which are new and distinct; kMaxRows in all.
  void Add(absl::Span<const uint64_t> ids);

  // Returns an id of `ids` that has a row, or that is there twice.
  std::optional<uint64_t> FindKnown(absl::Span<const uint64_t> ids);

  size_t size() const { return ids_.size(); }
  // The rows' ids, by their numbers. Valid until rows are added.
  absl::Span<const uint64_t> ids() const { return ids_; }

 private:
  RowIndex& IndexOf(uint64_t hash) { return *indexes_[StripeOf(hash)]; }

  RowArena arena_;                                  // the indexes' memory
  std::vector<std::unique_ptr<RowIndex>> indexes_;  // one for each stripe
  std::vector<uint64_t> ids_;                       // indexed by number
  std::vector<uint64_t> missing_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_LOCAL_ROW_NUMBERS_H_
