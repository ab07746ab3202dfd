#include "ml/optimizer/simd_level.h"

#include <algorithm>
#include <atomic>

namespace parasol {
namespace {

SimdLevel LevelOfThisMachine() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return SimdLevel::kAvx512;
  if (__builtin_cpu_supports("avx2")) return SimdLevel::kAvx2;
#endif
  return SimdLevel::kBaseline;
}

std::atomic<SimdLevel> g_limit{SimdLevel::kAvx512};

}  // namespace

SimdLevel WidestSimdLevel() {
  static const SimdLevel level = LevelOfThisMachine();
  return std::min(level, g_limit.load(std::memory_order_relaxed));
}

void LimitSimdLevel(SimdLevel limit) {
  g_limit.store(limit, std::memory_order_relaxed);
}

}  // namespace parasol
