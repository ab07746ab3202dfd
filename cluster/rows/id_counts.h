#ifndef PARASOL_CLUSTER_ROWS_ID_COUNTS_H_
#define PARASOL_CLUSTER_ROWS_ID_COUNTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cluster/rows/row_bounds.h"

namespace parasol {

// How often ids of one stripe that have no row have occurred, and when the last
// time was: open addressing, one entry after the other. An entry takes 8 bytes,
// 4 more if counts exceed 127, and 4 more if they age; .756 to .85 of the
// entries are in use. So a count takes 9 to 11 bytes, 14 to 16 with one of the
// two, 19 to 22 with both. Not thread-safe.
class IdCounts {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint32_t count = 0;
    // The update that touched it last; 0 if counts don't age.
    int64_t touched = 0;
  };

  // `bounds` says how large counts may be, and whether they age.
  explicit IdCounts(const RowBounds& bounds);

  // Returns the count of `hash` at update `update`: 0 if there is none, or if
  // it has gone.
  uint32_t Find(uint64_t hash, int64_t update) const;

  // Sets a count, which is 1 to min_count - 1, and the update that touched it,
  // unless a later one has.
  void Set(uint64_t hash, uint32_t count, int64_t touched);

  // Forgets a count, if it is there.
  void Erase(uint64_t hash);

  // Frees some entries of counts that have gone before `update`: all of them
  // in idle_steps calls.
  void Sweep(int64_t update);

  // Has counts that a later update than `most` touched count as touched by
  // `most`; no update behind `update` has touched any.
  void ClampTouched(int64_t update, int64_t most);

  // Calls `visit` for each count that has not gone at update `update`, in no
  // order.
  void ForEach(int64_t update,
               absl::FunctionRef<void(const Entry&)> visit) const;

  // Goes on with other rules of the same form.
  void UseBounds(const RowBounds& bounds);

  bool is_timed() const { return !touched_.empty(); }
  // Number of counts, with some that have gone.
  size_t size() const { return size_; }
  size_t bytes() const;

 private:
  size_t HomeOf(uint64_t hash) const;
  // Returns the slot of `hash`, or the free one where it belongs.
  size_t SlotOf(uint64_t hash) const;
  size_t Next(size_t slot) const {
    return slot + 1 == entries_.size() ? 0 : slot + 1;
  }
  uint64_t HashAt(size_t slot) const;
  uint32_t CountAt(size_t slot) const;
  int64_t TouchedAt(size_t slot, int64_t update) const;
  bool HasGone(size_t slot, int64_t update) const {
    return TouchedAt(slot, update) < bounds_.OldestAt(update);
  }
  void Put(size_t slot, uint64_t hash, uint32_t count, int64_t touched);
  void EraseSlot(size_t slot);
  void Grow(int64_t update);

  RowBounds bounds_;
  size_t size_ = 0;
  size_t swept_ = 0;  // the slot at which Sweep() goes on
  // The hash without the bits of its stripe, in the high bits, and the count,
  // or 1 if `counts_` has it. 0: the slot is free.
  std::vector<uint64_t> entries_;
  std::vector<uint32_t> counts_;   // empty: the entries have the counts
  std::vector<uint32_t> touched_;  // low bits; empty: counts don't age
  uint64_t stripe_ = 0;            // the stripe's bits, where a hash has them
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_ID_COUNTS_H_
