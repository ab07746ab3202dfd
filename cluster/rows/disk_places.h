#ifndef PARASOL_CLUSTER_ROWS_DISK_PLACES_H_
#define PARASOL_CLUSTER_ROWS_DISK_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "storage/tier/log_record.h"

namespace parasol {

// A map from the hashes of a stripe's rows that are on the disk to their places
// there, and when each was touched last: open addressing, one entry after the
// other. An entry takes 12 bytes, 8 more if rows are timed; .756 to .85 of the
// entries are in use. So a row takes 14 to 16 bytes, or 24 to 27. Not
// thread-safe.
class DiskPlaces {
 public:
  // Number of places that can be told apart.
  static constexpr LogPlace kPlaces = uint64_t{127} << 32;

  // `timed`: it is kept when a row was touched last.
  explicit DiskPlaces(bool timed);

  std::optional<LogPlace> Find(uint64_t hash) const;
  // Returns when a row, which must be there, was touched last; 0 if that is not
  // kept.
  int64_t TouchedAt(uint64_t hash) const;

  // `hash` must not be there yet; `place` is below kPlaces.
  void Insert(uint64_t hash, LogPlace place, int64_t touched);
  // Gives `hash`, which must be there, another place.
  void Move(uint64_t hash, LogPlace place);
  // Takes `hash`, which must be there, out.
  void Erase(uint64_t hash);

  // Has rows that a later update than `most` touched count as touched by it.
  void ClampTouched(int64_t most);

  // Calls `visit` for each row, in no order.
  void ForEach(
      absl::FunctionRef<void(uint64_t hash, int64_t touched)> visit) const;

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
  void Put(size_t slot, uint64_t hash, LogPlace place, int64_t touched);
  void Grow();

  const bool timed_;
  size_t size_ = 0;
  // The hash without the bits of its stripe, in the high bits, and 1 more than
  // the high bits of the place. 0: the slot is free.
  std::vector<uint64_t> entries_;
  std::vector<uint32_t> places_;  // low bits
  std::vector<int64_t> touched_;  // empty if rows are not timed
  uint64_t stripe_ = 0;           // the stripe's bits, where a hash has them
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_ROWS_DISK_PLACES_H_
