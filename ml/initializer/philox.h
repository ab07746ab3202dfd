#ifndef PARASOL_ML_INITIALIZER_PHILOX_H_
#define PARASOL_ML_INITIALIZER_PHILOX_H_

#include <array>
#include <cstdint>

namespace parasol {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"):
// the random bits of a counter under a key, without any state between calls.
using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_PHILOX_H_
