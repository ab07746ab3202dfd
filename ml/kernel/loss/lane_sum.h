#ifndef PARASOL_ML_KERNEL_LOSS_LANE_SUM_H_
#define PARASOL_ML_KERNEL_LOSS_LANE_SUM_H_

#include <cstdint>

namespace parasol {

// What an AVX-512 register holds.
inline constexpr int64_t kLanes = 16;

// Σ value(i) for i < size, in kLanes partial sums: a sum in order cannot be
// computed with vectors. Inlined, to be compiled for its caller's machine.
template <typename Value>
[[gnu::always_inline]] inline float LaneSum(int64_t size, Value value) {
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    // Unrolled, it would not become vectors.
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
