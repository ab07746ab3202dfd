#ifndef PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_
#define PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_

namespace parasol {

// For which machines a loop is compiled, each level for more than the last.
enum class SimdLevel { kBaseline, kAvx2, kAvx512 };

// The highest one that this machine has and no limit forbids. Thread-safe.
SimdLevel WidestSimdLevel();

// For tests: nothing above `limit` is used from here on.
void LimitSimdLevel(SimdLevel limit);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_
