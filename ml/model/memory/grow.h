#ifndef PARASOL_ML_MODEL_MEMORY_GROW_H_
#define PARASOL_ML_MODEL_MEMORY_GROW_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/device/device.h"

namespace parasol {

// Makes `array` at least `size` long, by at least half; never shorter. A
// batch's arrays are of its size or longer, so that a smaller one costs
// nothing.
template <typename T>
void GrowTo(std::vector<T>& array, size_t size) {
  if (array.size() < size) array.resize(std::max(size, array.size() * 3 / 2));
}

// Makes `array` at least `size` elements long, in the device's memory. It grows
// by at least half, so that varying sizes soon need no allocation. An array
// that grows loses its contents.
//   ResourceExhausted  there is not enough memory.
template <typename T>
absl::Status Grow(Device& device, size_t size, Array<T>& array) {
  if (size <= array.size() && array.size() > 0) return absl::OkStatus();
  const size_t larger = std::max({size, array.size() * 3 / 2, size_t{1}});
  ASSIGN_OR_RETURN(array, device.NewArray<T>(larger));
  return absl::OkStatus();
}
// Does the same as Grow() for an array in host memory.
template <typename T>
absl::Status GrowOnHost(Device& device, size_t size, Array<T>& array) {
  if (size <= array.size() && array.size() > 0) return absl::OkStatus();
  const size_t larger = std::max({size, array.size() * 3 / 2, size_t{1}});
  ASSIGN_OR_RETURN(array, device.NewHostArray<T>(larger));
  return absl::OkStatus();
}

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_MEMORY_GROW_H_
