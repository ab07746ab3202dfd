#ifndef PARASOL_WORKER_STORE_TABLE_ROW_NUMBERS_H_
#define PARASOL_WORKER_STORE_TABLE_ROW_NUMBERS_H_

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
// rows are made. Several threads may call const functions at once.
class RowNumbers {
 public:
  static constexpr size_t kMaxRows = std::numeric_limits<int32_t>::max();
  static constexpr int32_t kMissing = -1;

  RowNumbers();

  // Writes the numbers of the rows of ids with the hashes `hashes` to
  // `numbers`, and kMissing for those that are missing.
  void Probe(absl::Span<const uint64_t> hashes, int32_t* numbers) const;

  // Writes the numbers of rows to `numbers` that Probe() has left missing
  // there, perhaps before rows were added. `hashes` belong to distinct ids.
  // Rows that are still missing stay so.
  void Find(absl::Span<const uint64_t> hashes, absl::Span<int32_t> numbers);
  // The ids that the last Find() has missed. Valid until the next one.
  absl::Span<const uint64_t> missing() const { return missing_; }

  // Adds rows, which are new and distinct; kMaxRows in all.
  void Add(absl::Span<const uint64_t> ids);
  // Adds missing(), and writes the numbers of these rows to the places of
  // `numbers`, which the last Find() had, where they are missing.
  void AddMissing(absl::Span<int32_t> numbers);

  // Returns an id of `ids` that has a row, or that is there twice.
  std::optional<uint64_t> FindKnown(absl::Span<const uint64_t> ids);

  // Compares the rows with `other`'s, if they were the same at the last call,
  // which takes no time for rows that were compared then.
  void Compare(const RowNumbers& other);
  // Returns true if Compare() has found the same rows under the same numbers,
  // and none was added to either since.
  bool AreThoseOf(const RowNumbers& other) const {
    return compared_ == &other && same_ == size() && same_ == other.size();
  }

  size_t size() const { return ids_.size(); }
  // The rows' ids, by their numbers. Valid until rows are added.
  absl::Span<const uint64_t> ids() const { return ids_; }

 private:
  RowIndex& IndexOf(uint64_t hash) { return *indexes_[StripeOf(hash)]; }

  RowArena arena_;                                  // the indexes' memory
  std::vector<std::unique_ptr<RowIndex>> indexes_;  // one for each stripe
  std::vector<uint64_t> ids_;                       // indexed by number
  std::vector<uint64_t> missing_;
  // The rows that Compare() was called with last, and how many of the first
  // rows are the same there.
  const RowNumbers* compared_ = nullptr;
  size_t same_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TABLE_ROW_NUMBERS_H_
