#ifndef PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_
#define PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_

namespace parasol {

// Instruction set that a loop is compiled for. Each level includes the one
// before it.
enum class SimdLevel { kBaseline, kAvx2, kAvx512 };

// Returns the highest level that this machine has and LimitSimdLevel() allows.
// Thread-safe.
SimdLevel WidestSimdLevel();

// Limits all loops to levels up to `limit` from now on. For tests.
void LimitSimdLevel(SimdLevel limit);

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SIMD_LEVEL_H_
