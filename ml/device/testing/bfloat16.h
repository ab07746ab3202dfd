#ifndef PARASOL_ML_DEVICE_TESTING_BFLOAT16_H_
#define PARASOL_ML_DEVICE_TESTING_BFLOAT16_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ml/compression/half_bits.h"
#include "ml/device/elements.h"
#include "ml/device/testing/device_fixture.h"

namespace parasol {

// Most that rounding to bfloat16 moves a number by, as a share of it: half of
// the distance 2^-7 between neighbours.
inline constexpr double kBfloat16Rounding = 0x1p-8;

inline std::vector<Bfloat16> ToBfloat16(absl::Span<const float> values) {
  std::vector<Bfloat16> rounded;
  for (const float value : values) {
    rounded.push_back({Bfloat16FromFloat(value)});
  }
  return rounded;
}

inline std::vector<float> ToFloats(absl::Span<const Bfloat16> values) {
  std::vector<float> floats;
  for (const Bfloat16 value : values) {
    floats.push_back(FloatFromBfloat16(value.bits));
  }
  return floats;
}

// The values as bfloat16 can hold them.
inline std::vector<float> Rounded(absl::Span<const float> values) {
  return ToFloats(ToBfloat16(values));
}

// Random values that bfloat16 holds.
inline std::vector<float> RandomBfloat16s(int64_t size, uint32_t seed) {
  const reference::Matrix m = RandomMatrix(1, size, seed);
  return Rounded(std::vector<float>(m.values.begin(), m.values.end()));
}

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_TESTING_BFLOAT16_H_
