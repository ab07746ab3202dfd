#include "ml/compression/random_rounding.h"

#include <cstring>

#include "ml/compression/half_bits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace parasol {
namespace {

#if defined(__x86_64__)
constexpr size_t kAtOnce = 8;

bool HasLanes() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

// RandomBitsOf(), of the elements that `counters` has: the key's lower half
// plus the element's multiple.
__attribute__((target("avx2"))) inline __m256i RandomBits(__m256i counters,
                                                          __m256i upper_half) {
  __m256i bits = _mm256_xor_si256(counters, _mm256_srli_epi32(counters, 16));
  bits = _mm256_mullo_epi32(
      bits, _mm256_set1_epi32(static_cast<int>(kFirstMultiplier)));
  bits = _mm256_xor_si256(bits, upper_half);
  bits = _mm256_xor_si256(bits, _mm256_srli_epi32(bits, 13));
  bits = _mm256_mullo_epi32(
      bits, _mm256_set1_epi32(static_cast<int>(kSecondMultiplier)));
  return _mm256_srli_epi32(bits, 16);
}

// Bfloat16FromFloat() of eight values.
__attribute__((target("avx2"))) inline __m256i Round(__m256i bits,
                                                     __m256i random) {
  const __m256i below_infinity = _mm256_set1_epi32(kFloatInfinity - 1);
  const __m256i magnitude =
      _mm256_and_si256(bits, _mm256_set1_epi32(~kFloatSign));
  const __m256i upper = _mm256_srli_epi32(bits, 16);
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, random), 16);
  const __m256i would_overflow = _mm256_andnot_si256(
      _mm256_cmpgt_epi32(magnitude, below_infinity),
      _mm256_cmpgt_epi32(_mm256_add_epi32(magnitude, random), below_infinity));
  const __m256i is_nan =
      _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(kFloatInfinity));
  const __m256i finite = _mm256_blendv_epi8(rounded, upper, would_overflow);
  return _mm256_blendv_epi8(
      finite, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), is_nan);
}

// What follows is half_bits.h's, eight values at a time: GCC 12 makes no vector
// code of that loop, or does, depending on what is compiled beside it. Returns
// how many values were rounded, a multiple of kAtOnce.
__attribute__((target("avx2"))) size_t EncodeLanes(size_t count,
                                                   const float* values,
                                                   uint64_t key,
                                                   std::byte* out) {
  const __m256i upper_half = _mm256_set1_epi32(static_cast<int>(key >> 32));
  const __m256i step =
      _mm256_set1_epi32(static_cast<int>(kAtOnce * kElementFactor));
  __m256i counters = _mm256_add_epi32(
      _mm256_set1_epi32(static_cast<int>(key)),
      _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                         _mm256_set1_epi32(static_cast<int>(kElementFactor))));
  const size_t end = count - count % kAtOnce;
  for (size_t i = 0; i < end; i += kAtOnce) {
    const __m256i rounded =
        Round(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i)),
              RandomBits(counters, upper_half));
    // Packs each half of the lanes into its half of the register.
    const __m256i packed = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(rounded, rounded), 0b11'01'10'00);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * sizeof(uint16_t)),
                     _mm256_castsi256_si128(packed));
    counters = _mm256_add_epi32(counters, step);
  }
  return end;
}
#else
bool HasLanes() { return false; }
size_t EncodeLanes(size_t, const float*, uint64_t, std::byte*) { return 0; }
#endif

}  // namespace

void EncodeAtRandom(absl::Span<const float> values, uint64_t key,
                    std::byte* out) {
  size_t i =
      HasLanes() ? EncodeLanes(values.size(), values.data(), key, out) : 0;
  for (; i < values.size(); ++i) {
    const uint16_t half = Bfloat16FromFloat(
        values[i], RandomBitsOf(key, static_cast<uint32_t>(i)));
    std::memcpy(out + i * sizeof(half), &half, sizeof(half));
  }
}

}  // namespace parasol
