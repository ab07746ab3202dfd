#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_ROUND_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_ROUND_H_

#include <bit>
#include <cstdint>

namespace cuda_on_host {

// Rounds a finite value to TF32, which has 10 bits of mantissa.
inline float RoundToTf32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7f800000) == 0x7f800000) return value;
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}

}  // namespace cuda_on_host

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_ROUND_H_
