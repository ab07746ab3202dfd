#include <bit>
#include <cmath>
#include <cstdint>

#include "ml/kernel/image/convert.h"

namespace parasol::cpu {
namespace {

float ToFloat(float value) { return value; }
float ToFloat(Bfloat16 value) {
  return std::bit_cast<float>(uint32_t{value.bits} << 16);
}

void Round(float value, float& to) { to = value; }
void Round(float value, Bfloat16& to) {
  constexpr uint16_t kNan = 0x7fff;  // as on a CUDA device
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  to.bits = std::isnan(value) ? kNan : static_cast<uint16_t>(rounded);
}

template <typename From, typename To>
void ConvertAll(const From* from, int64_t size, To* to) {
  for (int64_t i = 0; i < size; ++i) Round(ToFloat(from[i]), to[i]);
}

}  // namespace

absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to) {
  WithEdgeType(from.type(), [&]<typename From>() {
    WithEdgeType(to.type(), [&]<typename To>() {
      ConvertAll(from.As<From>(), size, to.As<To>());
    });
  });
  return absl::OkStatus();
}

}  // namespace parasol::cpu
