#ifndef PARASOL_ML_KERNEL_VECTOR_MATH_H_
#define PARASOL_ML_KERNEL_VECTOR_MATH_H_

#include <bit>
#include <cmath>
#include <cstdint>

// Functions of one float32 without a branch or a call, so that a loop over them
// becomes vector code. NaN gives NaN. vector_math_test.cc measures the largest
// errors over all of [-90, 90].

#define PARASOL_VECTOR_MATH __attribute__((always_inline)) inline

namespace parasol::vector_math {

// Returns e^x for x up to 88; 0 below -87, where float32 has hardly anything
// left. Relative error below 1e-7.
//
// Returns 2^n · e^r, n being the integer next to x / ln 2 and |r| <= ln 2 / 2,
// by Cephes's polynomial. Adding 1.5 · 2^23 leaves n in the low bits of the
// sum.
PARASOL_VECTOR_MATH float Exp(float x) {
  constexpr float kRound = 12582912.0f;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr int kMantissaBits = 23;
  constexpr uint32_t kOne = 0x3f800000;
  const float rounded = x * kLog2E + kRound;
  const float n = rounded - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float power = std::bit_cast<float>(
      (std::bit_cast<uint32_t>(rounded) << kMantissaBits) + kOne);
  return x < -87.0f ? 0.0f : p * power;
}

// Returns 1 / (1 + e^-x). Error below 2e-7.
PARASOL_VECTOR_MATH float Sigmoid(float x) {
  const float e = Exp(-std::fabs(x));
  const float of_magnitude = 1.0f / (1.0f + e);
  return x < 0 ? e * of_magnitude : of_magnitude;
}

// Returns tanh x. Relative error below 3e-7; small x go through Cephes's
// polynomial, because 1 - e^-2|x| would lose digits there.
PARASOL_VECTOR_MATH float Tanh(float x) {
  const float magnitude = std::fabs(x);
  const float e = Exp(-2 * magnitude);
  const float far = (1 - e) / (1 + e);
  const float square = x * x;
  float p = -5.70498872745e-3f;
  p = p * square + 2.06390887954e-2f;
  p = p * square - 5.37397155531e-2f;
  p = p * square + 1.33314422036e-1f;
  p = p * square - 3.33332819422e-1f;
  const float near = x + x * square * p;
  return magnitude < 0.625f ? near : (x < 0 ? -far : far);
}

// Returns e^(-x²/2), which NormalCdf() computes too.
PARASOL_VECTOR_MATH float Bell(float x) {
  constexpr float kInverseSqrt2 = 0.70710678f;
  const float z = std::fabs(x) * kInverseSqrt2;
  return Exp(-z * z);
}

// Returns Φ(x) = (1 + erf(x / √2)) / 2. Error below 4e-7 (Abramowitz and
// Stegun, 7.1.26).
PARASOL_VECTOR_MATH float NormalCdf(float x) {
  constexpr float kInverseSqrt2 = 0.70710678f;
  const float z = std::fabs(x) * kInverseSqrt2;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * Bell(x);
  return x < 0 ? tail : 1 - tail;
}

}  // namespace parasol::vector_math

#endif  // PARASOL_ML_KERNEL_VECTOR_MATH_H_
