#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/image/depthwise.h"

namespace parasol::cuda {
namespace {

// An axis as kernels read it: the elements of its windows, which lie `dilation`
// apart.
struct Axis {
  int64_t input;
  int64_t output;
  int64_t stride;
  int64_t before;
  int64_t dilation;
  int64_t elements;

  // The pixel that element `k` of window `o` meets; -1 for padding.
  __device__ int64_t Pixel(int64_t o, int64_t k) const {
    const int64_t pixel = o * stride + k * dilation - before;
    return pixel < input ? pixel : -1;
  }
  // The window whose element `k` meets the pixel; -1 if there is none.
  __device__ int64_t Window(int64_t pixel, int64_t k) const {
    const int64_t from = pixel + before - k * dilation;
    if (from < 0 || from % stride != 0) return -1;
    return from / stride < output ? from / stride : -1;
  }
};

struct Sizes {
  explicit Sizes(const DepthwiseShape& s)
      : height{s.height.input,  s.height.output,   s.height.stride,
               s.height.before, s.height_dilation, s.rows()},
        width{s.width.input,  s.width.output,   s.width.stride,
              s.width.before, s.width_dilation, s.columns()},
        channels(s.channels),
        multiplier(s.multiplier),
        filters(s.filters()) {}

  Axis height;
  Axis width;
  int64_t channels;
  int64_t multiplier;
  int64_t filters;
};

struct DepthwiseOutput {
  Sizes s;
  const float* x;
  const float* kernel;
  float* y;
  __device__ void operator()(int64_t index) const {
    const int64_t q = index % s.filters;
    const int64_t j = index / s.filters % s.width.output;
    const int64_t i = index / s.filters / s.width.output % s.height.output;
    const int64_t n = index / s.filters / s.width.output / s.height.output;
    float sum = 0;
    for (int64_t k = 0; k < s.height.elements; ++k) {
      const int64_t row = s.height.Pixel(i, k);
      if (row < 0) continue;
      for (int64_t l = 0; l < s.width.elements; ++l) {
        const int64_t column = s.width.Pixel(j, l);
        if (column < 0) continue;
        const int64_t pixel =
            (n * s.height.input + row) * s.width.input + column;
        sum += x[pixel * s.channels + q / s.multiplier] *
               kernel[(k * s.width.elements + l) * s.filters + q];
      }
    }
    y[index] = sum;
  }
};

struct DepthwiseInput {
  Sizes s;
  const float* dy;
  const float* kernel;
  float* dx;
  __device__ void operator()(int64_t index) const {
    const int64_t c = index % s.channels;
    const int64_t column = index / s.channels % s.width.input;
    const int64_t row = index / s.channels / s.width.input % s.height.input;
    const int64_t n = index / s.channels / s.width.input / s.height.input;
    float sum = 0;
    for (int64_t k = 0; k < s.height.elements; ++k) {
      const int64_t i = s.height.Window(row, k);
      if (i < 0) continue;
      for (int64_t l = 0; l < s.width.elements; ++l) {
        const int64_t j = s.width.Window(column, l);
        if (j < 0) continue;
        const float* const from =
            dy + ((n * s.height.output + i) * s.width.output + j) * s.filters;
        const float* const w = kernel + (k * s.width.elements + l) * s.filters;
        for (int64_t q = c * s.multiplier; q < (c + 1) * s.multiplier; ++q) {
          sum += from[q] * w[q];
        }
      }
    }
    dx[index] = sum;
  }
};

// The part of one output pixel in the gradient of the windows' element (k, l).
struct KernelTerm {
  Sizes s;
  const float* x;
  const float* dy;
  int64_t k;
  int64_t l;
  __device__ void operator()(int64_t output, int64_t q,
                             float (&sums)[1]) const {
    const int64_t column = s.width.Pixel(output % s.width.output, l);
    const int64_t row =
        s.height.Pixel(output / s.width.output % s.height.output, k);
    if (row < 0 || column < 0) return;
    const int64_t n = output / s.width.output / s.height.output;
    const int64_t pixel = (n * s.height.input + row) * s.width.input + column;
    sums[0] +=
        x[pixel * s.channels + q / s.multiplier] * dy[output * s.filters + q];
  }
};

}  // namespace

absl::Status Depthwise(Device& device, const DepthwiseShape& shape,
                       const float* x, const float* kernel, float* y) {
  return ForEach(device, "depthwise convolution", shape.y_size(),
                 DepthwiseOutput{Sizes(shape), x, kernel, y});
}

absl::Status DepthwiseKernelGradient(Device& device,
                                     const DepthwiseShape& shape,
                                     const float* x, const float* dy,
                                     float* dkernel) {
  for (int64_t k = 0; k < shape.rows(); ++k) {
    for (int64_t l = 0; l < shape.columns(); ++l) {
      float* const sums = dkernel + (k * shape.columns() + l) * shape.filters();
      RETURN_IF_ERROR(
          SumRowsOf<1>(device, "gradient of a depthwise convolution's kernel",
                       shape.outputs(), shape.filters(),
                       KernelTerm{Sizes(shape), x, dy, k, l}, StoreSum{sums}));
    }
  }
  return absl::OkStatus();
}

absl::Status DepthwiseInputGradient(Device& device, const DepthwiseShape& shape,
                                    const float* dy, const float* kernel,
                                    float* dx) {
  return ForEach(device, "gradient of a depthwise convolution's input",
                 shape.x_size(), DepthwiseInput{Sizes(shape), dy, kernel, dx});
}

}  // namespace parasol::cuda
