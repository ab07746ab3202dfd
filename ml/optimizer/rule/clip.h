#ifndef PARASOL_ML_OPTIMIZER_RULE_CLIP_H_
#define PARASOL_ML_OPTIMIZER_RULE_CLIP_H_

#include <cmath>
#include <cstdint>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

// The arithmetic of clipping (ml/optimizer/clip.h), the same on every device.
//
// A sum of many terms has this order, which 256 threads can keep: lane l adds
// up the terms l, l + 256, l + 512, …; then the upper half of the lanes is
// added to the lower one, until one is left. The sum of a gradient's squares is
// such a sum over chunks of 4,096 elements, and a chunk's is one over its
// elements; the sum of all gradients is one over the gradients.
constexpr int64_t kSumLanes = 256;
constexpr int64_t kSumChunk = 4096;

// Returns `value` if it is NaN.
PARASOL_RULE float Clamp(float limit, float value) {
  const float at_most = value > limit ? limit : value;
  return at_most < -limit ? -limit : at_most;
}

PARASOL_RULE double Square(float value) {
  return static_cast<double>(value) * value;
}

PARASOL_RULE float Scale(double factor, float value) {
  return static_cast<float>(value * factor);
}

// Returns limit / max(norm, limit). An infinite norm gives 0: 0 times an
// infinity is NaN.
PARASOL_RULE double NormFactor(double limit, double sum_of_squares) {
  const double norm = std::sqrt(sum_of_squares);
  return norm <= limit ? 1 : limit / norm;
}

// Returns NormFactor(), but NaN for an infinite norm.
PARASOL_RULE double GlobalNormFactor(double limit, double sum_of_squares) {
  const double zero_or_nan = sum_of_squares - sum_of_squares;
  return NormFactor(limit, sum_of_squares) + zero_or_nan;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_CLIP_H_
