#ifndef PARASOL_ML_KERNEL_IMAGE_PAD_H_
#define PARASOL_ML_KERNEL_IMAGE_PAD_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// Number of zeros that surround a tensor on each axis: `before` and `after` it.
struct PadShape {
  static constexpr size_t kMaxAxes = 8;
  using Axes = std::array<int64_t, kMaxAxes>;

  size_t axes = 0;  // 1 to kMaxAxes
  Axes input = {};
  Axes before = {};
  Axes after = {};

  int64_t x_size() const {
    int64_t size = 1;
    for (size_t i = 0; i < axes; ++i) size *= input[i];
    return size;
  }
  int64_t y_size() const {
    int64_t size = 1;
    for (size_t i = 0; i < axes; ++i) size *= before[i] + input[i] + after[i];
    return size;
  }
};

// Both functions enqueue on the compute stream and return; outputs overlap no
// input, and have its type. Error Unavailable: the device was lost.

// Computes y = x with zeros around it.
absl::Status Pad(Device& device, const PadShape& shape, ConstElements x,
                 Elements y);

// Copies to `dx` the elements of `dy` at the positions that x has in y.
absl::Status PadGradient(Device& device, const PadShape& shape,
                         ConstElements dy, Elements dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status Pad(Device& device, const PadShape& shape, const float* x,
                 float* y);
absl::Status PadGradient(Device& device, const PadShape& shape, const float* dy,
                         float* dx);
}  // namespace cpu

namespace cuda {
absl::Status Pad(Device& device, const PadShape& shape, ConstElements x,
                 Elements y);
absl::Status PadGradient(Device& device, const PadShape& shape,
                         ConstElements dy, Elements dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_PAD_H_
