#include "storage/crc32c_concat.h"

#include <array>

namespace parasol {
namespace {

// Polynomials over GF(2) modulo Castagnoli's, bits reversed: bit 31 is x^0.
constexpr uint32_t kCastagnoli = 0x82f63b78;
constexpr uint32_t kOne = uint32_t{1} << 31;

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? kCastagnoli : 0);  // times x
  }
  return product;
}

// Element i is x^(8 * 2^i): what 2^i bytes multiply by.
constexpr std::array<uint32_t, 64> PowersOfBytes() {
  std::array<uint32_t, 64> powers = {};
  uint32_t power = kOne >> 8;
  for (uint32_t& p : powers) {
    p = power;
    power = Multiply(power, power);
  }
  return powers;
}

constexpr std::array<uint32_t, 64> kPowers = PowersOfBytes();

}  // namespace

// As a crc is linear, the first bytes' is multiplied by x for each bit that
// follows.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (int i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if (second_bytes & 1) first = Multiply(kPowers[i], first);
  }
  return first ^ second;
}

}  // namespace parasol
