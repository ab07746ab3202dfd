#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "ml/kernel/dropout.h"

namespace parasol::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kWords = 4;
constexpr int64_t kBlock = kLanes * kWords;

// Philox4x32 of so many counters at once (ml/initializer/philox.h), a vector
// for each of its words.
struct PhiloxLanes {
  uint32_t word[kWords][kLanes];
};

__attribute__((always_inline)) inline void Round(uint32_t key0, uint32_t key1,
                                                 PhiloxLanes& c) {
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c.word[0][l];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c.word[2][l];
    const uint32_t word1 = c.word[1][l];
    const uint32_t word3 = c.word[3][l];
    c.word[0][l] = static_cast<uint32_t>(product1 >> 32) ^ word1 ^ key0;
    c.word[1][l] = static_cast<uint32_t>(product1);
    c.word[2][l] = static_cast<uint32_t>(product0 >> 32) ^ word3 ^ key1;
    c.word[3][l] = static_cast<uint32_t>(product0);
  }
}

__attribute__((always_inline)) inline void Philox(uint64_t seed, uint64_t block,
                                                  PhiloxLanes& c) {
  constexpr int kRounds = 10;
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t counter = block * kLanes + l;
    c.word[0][l] = static_cast<uint32_t>(counter);
    c.word[1][l] = static_cast<uint32_t>(counter >> 32);
    c.word[2][l] = 0;
    c.word[3][l] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    Round(key0, key1, c);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
}

PARASOL_MULTIVERSION void Drop(uint32_t threshold, float scale, uint64_t seed,
                               const float* x, int64_t size, float* y) {
  PhiloxLanes random;
  const uint32_t* const bits = random.word[0];
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    Philox(seed, begin / kBlock, random);
    const int64_t count = std::min(kBlock, size - begin);
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      const float kept = x[begin + i] * scale;
      y[begin + i] = bits[i] < threshold ? 0.0f : kept;
    }
  }
}

}  // namespace

absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y) {
  Drop(static_cast<uint32_t>(rate * 0x1p32), static_cast<float>(1 / (1 - rate)),
       *seed.base + seed.offset, x, size, y);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
