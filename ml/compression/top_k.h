#ifndef PARASOL_ML_COMPRESSION_TOP_K_H_
#define PARASOL_ML_COMPRESSION_TOP_K_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the number of elements out of `count` that are sent for a share in
// (0, 1]: max(1, ceil(share · count)), but 0 if `count` is 0.
size_t KeptCount(size_t count, double share);

// Selects the largest elements of a gradient for sending and remembers the
// rest: error feedback (Stich, Cordonnier, Jaggi: "Sparsified SGD with Memory",
// 2018).
//
// The KeptCount() elements of largest |v| are sent, v = gradient + residual;
// the unsent rest of v is the next residual. So the sum of everything sent,
// plus the residual, is the sum of all gradients, but for the rounding of the
// additions.
//
// Owns scratch memory, which grows to the largest block and is used again. One
// thread at a time may use an object; blocks may follow each other in any
// order.
class TopK {
 public:
  // The elements of one block that are sent. Valid until the next call.
  struct Kept {
    // Offsets from the block's first element, ascending.
    absl::Span<const uint32_t> offsets;
    // Values at `offsets`, one each. Encode(encoding, …) and Decode() give
    // exactly these values back.
    absl::Span<const float> values;
  };

  // Returns the elements of a block to send and updates `residual`. `gradient`
  // and `residual` have one length, below 2^32, and do not overlap; a block
  // that was never sent has a residual of zeros. If several elements have the
  // same magnitude, the ones at lower offsets are sent. A NaN counts as larger
  // than all numbers, so that the receiver sees it.
  //
  // The values are rounded to `encoding`, and the difference stays in
  // `residual`. A value that becomes infinite or NaN is sent as it is and
  // leaves 0.
  Kept Select(absl::Span<const float> gradient, double share,
              job::Encoding encoding, absl::Span<float> residual);

 private:
  // Counts of keys by one digit. Neighbouring keys are counted in different
  // histograms, because an increment waits for a preceding one of the same
  // counter.
  static constexpr size_t kBuckets = 2048;
  static constexpr size_t kHistograms = 4;
  using Histogram = std::array<uint32_t, kBuckets>;

  // The keys that are sent: all that are larger than `key`, and the first
  // `equal` ones that are equal to it.
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
