#ifndef PARASOL_ML_KERNEL_LOSS_LANE_SUM_H_
#define PARASOL_ML_KERNEL_LOSS_LANE_SUM_H_

#include <cstdint>

namespace parasol {

// Number of float32 values in an AVX-512 register.
inline constexpr int64_t kLanes = 16;

// Returns Σ value(i) for i < size, computed in kLanes partial sums, because a
// sum in order cannot be computed with vectors. Inlined, so that it is compiled
// for its caller's machine.
template <typename Value>
[[gnu::always_inline]] inline float LaneSum(int64_t size, Value value) {
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    // The loop must not be unrolled, or GCC does not turn it into vector code.
#if !defined(__clang__)
#pragma GCC unroll 1
#endif
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      partial[lane] += value(i + lane);
    }
  }
  float sum = 0;
  for (; i < size; ++i) sum += value(i);
  for (const float part : partial) sum += part;
  return sum;
}

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_LANE_SUM_H_
