#ifndef PARASOL_CLUSTER_ROWS_ROW_MARKS_H_
#define PARASOL_CLUSTER_ROWS_ROW_MARKS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace parasol {

// A set of rows of a stripe, by their numbers. Immutable once it is shared.
using RowSet = std::vector<uint64_t>;

inline bool Contains(const RowSet& rows, uint32_t row) {
  return row / 64 < rows.size() && (rows[row / 64] >> (row % 64) & 1) != 0;
}

// Returns how many of the rows first, …, first + count - 1 are in the set.
inline uint32_t CountIn(const RowSet& rows, uint32_t first, uint32_t count) {
  uint32_t found = 0;
  const uint32_t end = first + count;
  while (first < end && first / 64 < rows.size()) {
    const uint32_t next = std::min(end, (first / 64 + 1) * 64);
    uint64_t word = rows[first / 64] >> (first % 64);
    if (next - first < 64) word &= (uint64_t{1} << (next - first)) - 1;
    found += std::popcount(word);
    first = next;
  }
  return found;
}

// The snapshot that is taken, and the earlier one to which it is compared, by
// the numbers that whoever takes them counts them with.
struct SnapshotTurn {
  // Number of this snapshot, from 1 on, larger than those before; 0: later
  // snapshots are not compared to it.
  uint64_t number = 0;
  // Number of the snapshot since which changes are wanted; 0: all rows are.
  uint64_t since = 0;
};

// The rows of a stripe that have changed since the newest snapshot of the
// table, and since one before it: of a checkpoint that failed nothing is lost,
// for the next snapshot is compared to the one before. One bit for each row and
// set, and 8 bytes for each row that has gone: if they become too many, the
// marks are lost until the next Restart(). Not thread-safe.
class RowMarks {
 public:
  // The time of a row's last change: since the newest snapshot, since the older
  // one, or before.
  enum class Change { kBefore, kSinceOlder, kSinceNewest };

  // Ids of removed rows that are kept beside as many as there are rows.
  static constexpr size_t kFreeRemoved = 4096;

  // False until the first Restart(), and while marks are lost: nothing is kept
  // then.
  bool is_on() const { return is_on_; }
  // Returns true if what has changed is not known any more. A snapshot has all
  // rows then.
  bool is_lost() const { return is_lost_; }

  // Notes that a row has changed, or was made. Call it if is_on().
  void Mark(uint32_t row) {
    if (row / 64 >= since_newest_.size()) since_newest_.resize(row / 64 + 1);
    since_newest_[row / 64] |= uint64_t{1} << (row % 64);
  }

  // Notes that the row of an id is no more, of `rows` rows. Call it if is_on().
  // The row that has its number from now on is to be marked, if is_on() still.
  void MarkRemoved(uint64_t id, size_t rows) {
    if (removed_since_newest_.size() + removed_before_.size() <
        rows + kFreeRemoved) {
      removed_since_newest_.push_back(id);
      return;
    }
    *this = RowMarks();
    is_lost_ = true;
  }

  // Call these if is_on().
  Change ChangeOf(uint32_t row) const {
    if (Contains(since_newest_, row)) return Change::kSinceNewest;
    return Contains(*before_, row) ? Change::kSinceOlder : Change::kBefore;
  }
  // Notes that a row is there that has changed then.
  void Set(uint32_t row, Change change) {
    if (change == Change::kSinceNewest) return Mark(row);
    if (Contains(since_newest_, row)) Put(since_newest_, row, false);
    const bool is_before = change == Change::kSinceOlder;
    if (Contains(*before_, row) != is_before) {
      Put(OwnBefore(), row, is_before);
    }
  }
  // Notes that row `from` has number `to` from now on, and `from` is none.
  void Move(uint32_t from, uint32_t to) {
    Set(to, ChangeOf(from));
    Set(from, Change::kBefore);
  }

  // The ids whose rows have been removed within the changes that were returned
  // last; some may have a row again.
  const std::vector<uint64_t>& removed() const { return removed_before_; }

  // Begins to keep the changes since a snapshot that is taken now, and forgets
  // earlier ones.
  void Restart() {
    is_on_ = true;
    is_lost_ = false;
    since_newest_.clear();
    removed_since_newest_.clear();
    removed_before_.clear();
    before_ = std::make_shared<RowSet>();
    before_is_shared_ = false;
  }

  // Returns what has changed since the newest snapshot, and begins to keep the
  // changes since one that is taken now; the older snapshot is then the one
  // that was the newest.
  std::shared_ptr<const RowSet> TakeSinceNewest() {
    before_ = std::make_shared<RowSet>(std::exchange(since_newest_, {}));
    before_is_shared_ = true;
    removed_before_ = std::exchange(removed_since_newest_, {});
    return before_;
  }

  // Does the same, with what has changed since the older snapshot, which stays
  // the older one.
  std::shared_ptr<const RowSet> TakeSinceOlder() {
    for (size_t i = 0; i < before_->size(); ++i) {
      if (i == since_newest_.size()) since_newest_.push_back(0);
      since_newest_[i] |= (*before_)[i];
    }
    removed_since_newest_.insert(removed_since_newest_.begin(),
                                 removed_before_.begin(),
                                 removed_before_.end());
    return TakeSinceNewest();
  }

 private:
  static void Put(RowSet& rows, uint32_t row, bool is_in) {
    if (row / 64 >= rows.size()) rows.resize(row / 64 + 1);
    const uint64_t bit = uint64_t{1} << (row % 64);
    rows[row / 64] = is_in ? rows[row / 64] | bit : rows[row / 64] & ~bit;
  }
  // Returns the changes before the newest snapshot, which nobody else has.
  RowSet& OwnBefore() {
    if (std::exchange(before_is_shared_, false)) {
      before_ = std::make_shared<RowSet>(*before_);
    }
    return *before_;
  }

  bool is_on_ = false;
  bool is_lost_ = false;
  RowSet since_newest_;
  // The changes between the older snapshot and the newest.
  std::shared_ptr<RowSet> before_;
  bool before_is_shared_ = false;
  // Ids of rows that have been removed, in the same times.
  std::vector<uint64_t> removed_since_newest_;
  std::vector<uint64_t> removed_before_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ROW_MARKS_H_
