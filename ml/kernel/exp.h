#ifndef PARASOL_ML_KERNEL_EXP_H_
#define PARASOL_ML_KERNEL_EXP_H_

#include <cstdint>
#include <cstring>

namespace parasol {

// e^x for x <= 88, to 2 units of 2^-23; 0 below -87, where float32 has hardly
// anything left; NaN for NaN. A loop of it becomes vectors, which a loop of the
// library's does not. Inlined, to be compiled for its caller's machine.
//
// x = n · ln 2 + r, |r| <= ln(2) / 2; e^r by the polynomial of Cephes's expf.
[[gnu::always_inline]] inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  // ln 2 in two parts, of which n times the first one is exact.
  constexpr float kLn2High = 0.693359375f;
  constexpr float kLn2Low = -2.12194440e-4f;
  // 1.5 · 2^23: adding it rounds to an integer, which is in the lowest bits.
  constexpr float kRounder = 12582912.0f;
  const float rounded = x * kLog2E + kRounder;
  const float n = rounded - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float fraction = p * r * r + r + 1.0f;
  // 2^n: n and the bias as an exponent; what else `rounded` holds falls out.
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return x < -87.0f ? 0.0f : fraction * power;
}

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_EXP_H_
