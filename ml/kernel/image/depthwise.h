#ifndef PARASOL_ML_KERNEL_IMAGE_DEPTHWISE_H_
#define PARASOL_ML_KERNEL_IMAGE_DEPTHWISE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/image/window.h"

namespace parasol {

// Sizes of a depthwise convolution. A window reaches over `window` pixels of an
// axis, of which each dilation-th is one of its elements.
struct DepthwiseShape {
  int64_t examples = 0;
  WindowAxis height;
  WindowAxis width;
  int64_t height_dilation = 1;
  int64_t width_dilation = 1;
  int64_t channels = 0;
  int64_t multiplier = 1;  // filters of each channel

  // Numbers of a window's elements.
  int64_t rows() const { return (height.window - 1) / height_dilation + 1; }
  int64_t columns() const { return (width.window - 1) / width_dilation + 1; }
  int64_t filters() const { return channels * multiplier; }
  // Numbers of pixels of y and of elements of the arrays.
  int64_t outputs() const { return examples * height.output * width.output; }
  int64_t x_size() const {
    return examples * height.input * width.input * channels;
  }
  int64_t y_size() const { return outputs() * filters(); }
};

// The depthwise convolution of images, in float32:
//   y[n,i,j,c·m+q] = Σ x[n, i·s+k·d-p, j·t+l·e-r, c] · w[k,l,c,q]
// with m filters q of each channel c. x is [examples, height, width, channels],
// w [rows, columns, channels, multiplier] and y [examples, output height,
// output width, filters]. Padding counts as 0.
//
// All functions enqueue on the compute stream and return; outputs overlap no
// input. Error Unavailable: the device was lost.
absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y);
absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel);
absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y);
absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel);
absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx);
}  // namespace cpu

namespace cuda {
absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y);
absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel);
absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_DEPTHWISE_H_
