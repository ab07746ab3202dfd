#ifndef PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_
#define PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_

#include <cstddef>
#include <cstring>

#include "base/multiversion.h"  // IWYU pragma: export

namespace parasol {

// The i-th float32 of `bytes`, at any alignment.
inline float LoadFloat(const std::byte* bytes, size_t i) {
  float value;
  std::memcpy(&value, bytes + i * sizeof(float), sizeof(float));
  return value;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_UPDATE_LOOP_H_
