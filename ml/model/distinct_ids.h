#ifndef PARASOL_ML_MODEL_DISTINCT_IDS_H_
#define PARASOL_ML_MODEL_DISTINCT_IDS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/row_hash.h"

namespace parasol {

// The distinct ids of one batch's inputs, numbered in the order of their
// stripes (base/row_hash.h), and within a stripe in the order in which they are
// first seen; and the number of each place's id. Places are counted over all
// inputs, one input after the other.
//
// The work is done in steps: Begin(), Divide(), and Number() of each group of
// stripes. Groups may be numbered by several threads at once: what comes out is
// the same. Its memory is used again.
class DistinctIds {
 public:
  static constexpr size_t kMaxGroups = 16;

  // Distinct ids with the numbers [first, first + size).
  struct Range {
    int32_t first = 0;
    int32_t size = 0;
  };
  // A place and the id there.
  struct Place {
    uint64_t hash;
    int32_t place;
    int32_t row;  // number of the id, less the first one of its group
  };
  // The places of a group's ids, stripe by stripe, in ascending order within a
  // stripe.
  struct GroupPlaces {
    int32_t first = 0;  // number of places of the groups before
    absl::Span<const Place> places = {};
    // The number of places of each of the group's distinct ids.
    absl::Span<const int32_t> counts = {};
  };

  // Forgets the batch before. The caller keeps `inputs`, the ids of each input,
  // which are at most 2^31 - 1 in all, until Divide() has returned.
  void Begin(absl::Span<const absl::Span<const uint64_t>> inputs);
  size_t num_groups() const { return num_groups_; }
  size_t num_places() const { return num_places_; }

  // Divides the ids among their stripes. To be called once a batch.
  void Divide();

  // Numbers the ids of a group, and returns their numbers. To be called once a
  // batch for each group. Waits for Divide(), and for the calls for all groups
  // before it, which must have been begun, perhaps by other threads.
  Range Number(size_t group);

  // Does all steps.
  void Assign(absl::Span<const absl::Span<const uint64_t>> inputs);

  // Returns the places of a group's ids, which have the numbers `range`.
  GroupPlaces PlacesOf(size_t group, Range range) const;
  // The hashes of ids that have been numbered.
  absl::Span<const uint64_t> hashes(Range range) const {
    return absl::MakeConstSpan(hashes_).subspan(range.first, range.size);
  }

  // The rest is valid when all calls of Number() have returned, until Begin().
  size_t size() const { return firsts_[num_groups_].load(); }
  // The hashes of the distinct ids, indexed by their numbers.
  absl::Span<const uint64_t> hashes() const {
    return absl::MakeConstSpan(hashes_).first(size());
  }
  // Returns the distinct ids, indexed by their numbers. Not thread-safe.
  absl::Span<const uint64_t> ids();
  // Returns the number of places of each distinct id. Not thread-safe.
  absl::Span<const uint32_t> counts();
  // The number of each id of an input.
  absl::Span<const int32_t> positions(size_t input) const {
    return absl::MakeConstSpan(positions_)
        .subspan(input_begin_[input],
                 input_begin_[input + 1] - input_begin_[input]);
  }

 private:
  // The first number of a group that no group before has told yet.
  static constexpr int32_t kUnknown = -1;

  size_t StripeBegin(size_t group) const {
    return group * kRowStripes / num_groups_;
  }
  int32_t PlaceBegin(size_t group) const {
    return stripe_begin_[StripeBegin(group)];
  }
  // Finds the distinct ids of a group, and returns their number.
  int32_t FindDistinct(size_t group);
  // The distinct hashes of a stripe: from 1, for 0 is FindDistinct()'s.
  uint64_t* FoundIn(size_t stripe) {
    return found_.data() + stripe_begin_[stripe] + stripe;
  }

  std::vector<absl::Span<const uint64_t>> inputs_;
  std::vector<size_t> input_begin_;  // first place of each input, and the end
  size_t num_places_ = 0;
  size_t num_groups_ = 1;
  std::atomic<bool> is_divided_ = false;
  // The first number of each group, and the end of all, or kUnknown.
  std::array<std::atomic<int32_t>, kMaxGroups + 1> firsts_ = {};
  bool has_ids_ = false;
  bool has_counts_ = false;

  // Arrays that may be longer than they have to be. By places: the hash of an
  // id, its number.
  std::vector<uint64_t> place_hashes_;
  std::vector<int32_t> positions_;
  // The places in the order of stripes, and where each stripe begins.
  std::vector<Place> places_;
  std::array<int32_t, kRowStripes + 1> stripe_begin_ = {};
  // The number of places of each distinct id, from the first place of its group
  // on.
  std::vector<int32_t> counts_;
  // Distinct hashes, with gaps between stripes, and their numbers.
  std::vector<uint64_t> found_;
  std::array<uint32_t, kRowStripes> stripe_size_ = {};
  // Indexed by number.
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> places_of_;
  // Hash tables with open addressing, each for one stripe of a group at a time:
  // the number of an id in its stripe, from 1; 0: the slot is empty.
  std::array<std::vector<uint32_t>, kMaxGroups> slots_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DISTINCT_IDS_H_
