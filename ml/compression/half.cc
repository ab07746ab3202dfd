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
void EncodeBfloat16(size_t count, const float* values, std::byte* out) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    StoreHalf(Bfloat16FromFloat(values[i]), out, i);
  }
}

PARASOL_MULTIVERSION
void DecodeBfloat16(size_t count, const std::byte* in, float* values) {
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
#else
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
