#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_BF16_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_BF16_H_

#include <bit>
#include <cstdint>

// The upper half of a float.
struct __nv_bfloat16 {
  uint16_t bits;
};

// Rounds to the nearest, of two equally near ones to the even one.
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return {bits};
}

inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) {
  return value.bits;
}

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_CUDA_BF16_H_
