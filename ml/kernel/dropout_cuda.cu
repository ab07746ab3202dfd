#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/dropout.h"

namespace parasol::cuda {
namespace {

constexpr int kLanes = 16;
constexpr int kWords = 4;

// Philox4x32-10 (ml/initializer/philox.h).
__device__ uint4 Philox(uint64_t seed, uint64_t counter) {
  uint4 c = make_uint4(static_cast<uint32_t>(counter),
                       static_cast<uint32_t>(counter >> 32), 0, 0);
  uint32_t key0 = static_cast<uint32_t>(seed);
  uint32_t key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32_t low0 = 0xD2511F53u * c.x;
    const uint32_t high0 = __umulhi(0xD2511F53u, c.x);
    const uint32_t low1 = 0xCD9E8D57u * c.z;
    const uint32_t high1 = __umulhi(0xCD9E8D57u, c.z);
    c = make_uint4(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

// The four elements of one counter.
struct Drop {
  uint32_t threshold;
  float scale;
  StoredSeed seed;
  const float* x;
  int64_t size;
  float* y;
  __device__ void operator()(int64_t counter) const {
    const uint4 random = Philox(*seed.base + seed.offset, counter);
    const uint32_t words[kWords] = {random.x, random.y, random.z, random.w};
    const int64_t first = counter / kLanes * kLanes * kWords + counter % kLanes;
    for (int w = 0; w < kWords; ++w) {
      const int64_t i = first + w * kLanes;
      if (i < size) y[i] = words[w] < threshold ? 0 : x[i] * scale;
    }
  }
};

}  // namespace

absl::Status Dropout(Device& device, double rate, StoredSeed seed,
                     const float* x, int64_t size, float* y) {
  constexpr int64_t kBlock = kLanes * kWords;
  const int64_t counters = (size + kBlock - 1) / kBlock * kLanes;
  return ForEach(device, "dropout", counters,
                 Drop{static_cast<uint32_t>(rate * 0x1p32),
                      static_cast<float>(1 / (1 - rate)), seed, x, size, y});
}

}  // namespace parasol::cuda
