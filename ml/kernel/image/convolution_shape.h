#ifndef PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_SHAPE_H_
#define PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_SHAPE_H_

#include <cstdint>

#include "ml/kernel/image/window.h"

namespace parasol {

struct ConvolutionShape {
  int64_t examples = 0;
  WindowAxis height;
  WindowAxis width;
  int64_t channels = 0;
  int64_t filters = 0;

  // Number of elements of the kernel for one filter: the product of its first
  // three axes.
  int64_t window_size() const {
    return height.window * width.window * channels;
  }
  int64_t outputs() const { return examples * height.output * width.output; }
  int64_t x_size() const {
    return examples * height.input * width.input * channels;
  }
  int64_t y_size() const { return outputs() * filters; }
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_CONVOLUTION_SHAPE_H_
