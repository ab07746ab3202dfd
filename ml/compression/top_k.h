#ifndef PARASOL_ML_COMPRESSION_TOP_K_H_
#define PARASOL_ML_COMPRESSION_TOP_K_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// How many of `count` elements are sent for a share in (0, 1]:
// max(1, ceil(share · count)), none of none.
size_t KeptCount(size_t count, double share);

// Sends the largest elements of a gradient and remembers the rest: error
// feedback (Stich, Cordonnier, Jaggi: "Sparsified SGD with Memory", 2018).
//
// With v = gradient + residual, the KeptCount() elements of largest |v| are
// sent; what is not sent of v is the next residual. So the sum of all that was
// sent, plus the residual, is the sum of all gradients, but for the rounding of
// the additions.
//
// Owns scratch memory, which grows to the largest block and is used again. One
// object is one thread's; blocks may follow each other in any order.
class TopK {
 public:
  // Of one block, until the next call.
  struct Kept {
    // From the block's first element, ascending.
    absl::Span<const uint32_t> offsets;
    // As many; Encode(encoding, …) and Decode() give exactly them.
    absl::Span<const float> values;
  };

  // `gradient` and `residual` have one length, below 2^32, and do not overlap;
  // a block that was never sent has a residual of zeros. Of equal magnitudes
  // the lower offset is sent; a NaN is larger than all, so that the receiver
  // sees it.
  //
  // The values are rounded to `encoding`, and what that takes from them stays
  // in `residual`. What becomes infinite or NaN is sent as it is and leaves 0.
  Kept Select(absl::Span<const float> gradient, double share,
              job::Encoding encoding, absl::Span<float> residual);

 private:
  // Numbers of keys by one digit. Neighbours are counted in different ones: an
  // increment that follows another of the same number waits for it.
  static constexpr size_t kBuckets = 2048;
  static constexpr size_t kHistograms = 4;
  using Histogram = std::array<uint32_t, kBuckets>;

  // The keys that are larger than `key` are sent, and the first `equal` of
  // those that are equal to it.
  struct Threshold {
    uint32_t key = 0;
    size_t equal = 0;
  };

  Threshold FindThreshold(size_t count, size_t kept);
  void CountByDigit(const uint32_t* keys, size_t count, int shift,
                    uint32_t mask);
  void TakeValues(job::Encoding encoding, size_t kept, float* residual);

  std::array<Histogram, kHistograms> histograms_;
  std::vector<uint32_t> keys_;
  std::vector<uint32_t> candidates_;
  std::vector<uint32_t> offsets_;
  std::vector<float> values_;
  std::vector<std::byte> encoded_;
};

}  // namespace parasol

#endif  // PARASOL_ML_COMPRESSION_TOP_K_H_
