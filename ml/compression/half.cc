#include "ml/compression/half.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/log.h"
#include "base/multiversion.h"
#include "ml/compression/half_bits.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace parasol {
namespace {

// Bytes are copied as they lie in memory.
static_assert(std::endian::native == std::endian::little);

constexpr size_t kHalfBytes = sizeof(uint16_t);

inline uint16_t LoadHalf(const std::byte* bytes, size_t i) {
  uint16_t half;
  std::memcpy(&half, bytes + i * kHalfBytes, kHalfBytes);
  return half;
}

inline void StoreHalf(uint16_t half, std::byte* bytes, size_t i) {
  std::memcpy(bytes + i * kHalfBytes, &half, kHalfBytes);
}

PARASOL_MULTIVERSION
void EncodeFloat16Portably(size_t count, const float* values, std::byte* out) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    StoreHalf(Float16FromFloat(values[i]), out, i);
  }
}

PARASOL_MULTIVERSION
void DecodeFloat16Portably(size_t count, const std::byte* in, float* values) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    values[i] = FloatFromFloat16(LoadHalf(in, i));
  }
}

PARASOL_MULTIVERSION
void EncodeBfloat16Portably(size_t count, const float* values, std::byte* out) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    StoreHalf(Bfloat16FromFloat(values[i]), out, i);
  }
}

PARASOL_MULTIVERSION
void DecodeBfloat16Portably(size_t count, const std::byte* in, float* values) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    values[i] = FloatFromBfloat16(LoadHalf(in, i));
  }
}

#if defined(__x86_64__)
// Returns true if the machine has F16C, as all x86-64 with AVX2 do. Compilers
// do not use its instructions for the portable loop.
bool HasFloat16Instructions() {
  static const bool has = [] {
    // Clang 14's __builtin_cpu_supports() knows no "f16c".
    unsigned eax, ebx, ecx, edx;
    return __builtin_cpu_supports("avx2") &&
           __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C) != 0;
  }();
  return has;
}

constexpr size_t kLanes = 8;

// How many of `count` values, a multiple of kLanes, were converted.
__attribute__((target("avx2,f16c"))) size_t EncodeFloat16Lanes(
    size_t count, const float* values, std::byte* out) {
  const size_t end = count - count % kLanes;
  for (size_t i = 0; i < end; i += kLanes) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * kHalfBytes), halves);
  }
  return end;
}

__attribute__((target("avx2,f16c"))) size_t DecodeFloat16Lanes(
    size_t count, const std::byte* in, float* values) {
  const size_t end = count - count % kLanes;
  for (size_t i = 0; i < end; i += kLanes) {
    const __m128i halves =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * kHalfBytes));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(halves));
  }
  return end;
}

// What follows is half_bits.h's, eight values at a time. From the portable
// loops GCC 12 makes, depending on what is compiled beside them, a branch for
// each value: 3.4 GB/s to encode and 2.3 to decode, where these make 16 and 27.
bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

// Lanes that are all ones where the float is a NaN.
__attribute__((target("avx2"))) inline __m256i IsNan(__m256i bits) {
  const __m256i magnitude =
      _mm256_and_si256(bits, _mm256_set1_epi32(~kFloatSign));
  return _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(kFloatInfinity));
}

__attribute__((target("avx2"))) inline __m256i RoundToBfloat16(
    const float* values) {
  const __m256i bits =
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i raised =
      _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i nan = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(_mm256_srli_epi32(raised, 16), nan, IsNan(bits));
}

__attribute__((target("avx2"))) size_t EncodeBfloat16Lanes(size_t count,
                                                           const float* values,
                                                           std::byte* out) {
  const size_t end = count - count % (2 * kLanes);
  for (size_t i = 0; i < end; i += 2 * kLanes) {
    // Packs each half of the lanes beside the other register's half.
    const __m256i packed = _mm256_packus_epi32(
        RoundToBfloat16(values + i), RoundToBfloat16(values + i + kLanes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i * kHalfBytes),
                        _mm256_permute4x64_epi64(packed, 0b11'01'10'00));
  }
  return end;
}

__attribute__((target("avx2"))) size_t DecodeBfloat16Lanes(size_t count,
                                                           const std::byte* in,
                                                           float* values) {
  const __m256i quiet = _mm256_set1_epi32(0x400000);
  const size_t end = count - count % kLanes;
  for (size_t i = 0; i < end; i += kLanes) {
    const __m128i halves =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * kHalfBytes));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(values + i),
        _mm256_or_si256(bits, _mm256_and_si256(IsNan(bits), quiet)));
  }
  return end;
}
#else
bool HasAvx2() { return false; }
size_t EncodeBfloat16Lanes(size_t, const float*, std::byte*) { return 0; }
size_t DecodeBfloat16Lanes(size_t, const std::byte*, float*) { return 0; }
bool HasFloat16Instructions() { return false; }
size_t EncodeFloat16Lanes(size_t, const float*, std::byte*) { return 0; }
size_t DecodeFloat16Lanes(size_t, const std::byte*, float*) { return 0; }
#endif

void EncodeFloat16(size_t count, const float* values, std::byte* out) {
  const size_t done =
      HasFloat16Instructions() ? EncodeFloat16Lanes(count, values, out) : 0;
  EncodeFloat16Portably(count - done, values + done, out + done * kHalfBytes);
}

void DecodeFloat16(size_t count, const std::byte* in, float* values) {
  const size_t done =
      HasFloat16Instructions() ? DecodeFloat16Lanes(count, in, values) : 0;
  DecodeFloat16Portably(count - done, in + done * kHalfBytes, values + done);
}

void EncodeBfloat16(size_t count, const float* values, std::byte* out) {
  const size_t done = HasAvx2() ? EncodeBfloat16Lanes(count, values, out) : 0;
  EncodeBfloat16Portably(count - done, values + done, out + done * kHalfBytes);
}

void DecodeBfloat16(size_t count, const std::byte* in, float* values) {
  const size_t done = HasAvx2() ? DecodeBfloat16Lanes(count, in, values) : 0;
  DecodeBfloat16Portably(count - done, in + done * kHalfBytes, values + done);
}

}  // namespace

size_t EncodedBytes(job::Encoding encoding, size_t count) {
  return count * (encoding == job::FLOAT32 ? sizeof(float) : kHalfBytes);
}

void Encode(job::Encoding encoding, absl::Span<const float> values,
            std::byte* out) {
  if (values.empty()) return;
  switch (encoding) {
    case job::FLOAT32:
      std::memcpy(out, values.data(), values.size() * sizeof(float));
      return;
    case job::FLOAT16:
      return EncodeFloat16(values.size(), values.data(), out);
    case job::BFLOAT16:
      return EncodeBfloat16(values.size(), values.data(), out);
  }
  CHECK(false) << "encoding " << static_cast<int>(encoding);
}

void Decode(job::Encoding encoding, const std::byte* in,
            absl::Span<float> out) {
  if (out.empty()) return;
  switch (encoding) {
    case job::FLOAT32:
      std::memcpy(out.data(), in, out.size() * sizeof(float));
      return;
    case job::FLOAT16:
      return DecodeFloat16(out.size(), in, out.data());
    case job::BFLOAT16:
      return DecodeBfloat16(out.size(), in, out.data());
  }
  CHECK(false) << "encoding " << static_cast<int>(encoding);
}

}  // namespace parasol
