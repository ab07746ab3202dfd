#ifndef PARASOL_ML_COMPRESSION_HALF_BITS_H_
#define PARASOL_ML_COMPRESSION_HALF_BITS_H_

#include <bit>
#include <cstdint>

// Conversion of one number to 16 bits and back, in integer arithmetic without
// jumps, so that a loop over it becomes vector code on any machine. This is the
// specification: a machine's own instructions must give the same bits.
//
// Numbers are rounded to nearest, ties to even, unless random bits are given. A
// NaN keeps its sign and the upper bits of its payload and becomes quiet.
namespace parasol {

inline constexpr uint32_t kFloatSign = 0x80000000;
inline constexpr uint32_t kFloatInfinity = 0x7f800000;

// Returns `value` as IEEE binary16: 1 sign, 5 exponent, 10 fraction bits. A
// value that rounds to 65,536 or more (65,520 and up) becomes an infinity.
constexpr uint16_t Float16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kFloatSign;
  // 2^-14 and up: the exponent's bias goes from 127 to 15 and the fraction
  // loses 13 bits; a carry out of the fraction is right in the exponent.
  const uint32_t normal =
      (magnitude - ((127u - 15) << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Numbers below 2^-14: the addition of 1/2, whose last bit is worth 2^-24,
  // rounds.
  constexpr float kHalf = .5f;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kHalf) -
      std::bit_cast<uint32_t>(kHalf);
  const uint32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  uint32_t half = magnitude < (127u - 14) << 23 ? subnormal : normal;
  half = magnitude >= (127u + 16) << 23 ? 0x7c00 : half;
  half = magnitude > kFloatInfinity ? nan : half;
  return static_cast<uint16_t>(half | (bits & kFloatSign) >> 16);
}

// Returns the value of `half`, exactly.
constexpr float FloatFromFloat16(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + ((127u - 15) << 23);
  // A subnormal is the fraction of a number in [2^-14, 2^-13), less 2^-14.
  constexpr float kSmallestNormal = 0x1p-14f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(
      std::bit_cast<float>((magnitude << 13) +
                           std::bit_cast<uint32_t>(kSmallestNormal)) -
      kSmallestNormal);
  const uint32_t special = kFloatInfinity | magnitude << 13;
  uint32_t bits = magnitude < 0x400 ? subnormal : normal;
  bits = magnitude >= 0x7c00 ? special : bits;
  bits |= magnitude > 0x7c00 ? 0x400000 : 0;
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

// Returns the upper half of a float32, rounded.
constexpr uint16_t Bfloat16FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & ~kFloatSign) > kFloatInfinity ? nan
                                                                     : rounded);
}

// Multipliers of RandomBitsOf(): of the golden ratio, and MurmurHash3's.
inline constexpr uint32_t kElementFactor = 0x9e3779b9;
inline constexpr uint32_t kFirstMultiplier = 0x85ebca6b;
inline constexpr uint32_t kSecondMultiplier = 0xc2b2ae35;

// Returns 16 random bits of element `i` under a key, which say nothing about
// another element's, or another key's. A key's own bits are to be mixed: it is
// a hash, as SplitMix() gives one.
constexpr uint32_t RandomBitsOf(uint64_t key, uint32_t i) {
  uint32_t bits = static_cast<uint32_t>(key) + i * kElementFactor;
  bits =
      (bits ^ bits >> 16) * kFirstMultiplier ^ static_cast<uint32_t>(key >> 32);
  bits = (bits ^ bits >> 13) * kSecondMultiplier;
  return bits >> 16;
}

// Returns one of the two bfloat16 between which a float32 lies: the one of
// larger magnitude for as many of the 65,536 values of `random`, 0 to 65,535,
// as `value` is on the way there, so that the mean is `value`. What bfloat16
// has stays, and a finite number stays finite.
constexpr uint16_t Bfloat16FromFloat(float value, uint32_t random) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & ~kFloatSign;
  uint32_t rounded = (bits + random) >> 16;
  // Beyond the largest number there is an infinity.
  const bool would_overflow =
      magnitude < kFloatInfinity && magnitude + random >= kFloatInfinity;
  rounded = would_overflow ? bits >> 16 : rounded;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>(magnitude > kFloatInfinity ? nan : rounded);
}

// Returns the value of `half`, exactly.
constexpr float FloatFromBfloat16(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  const uint32_t quiet = (bits & ~kFloatSign) > kFloatInfinity ? 0x400000 : 0;
  return std::bit_cast<float>(bits | quiet);
}

}  // namespace parasol

#endif  // PARASOL_ML_COMPRESSION_HALF_BITS_H_
