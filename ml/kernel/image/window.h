#ifndef PARASOL_ML_KERNEL_IMAGE_WINDOW_H_
#define PARASOL_ML_KERNEL_IMAGE_WINDOW_H_

#include <algorithm>
#include <cstdint>

namespace parasol {

enum class WindowPadding { kValid, kSame };

// One axis of a window that slides over an image. Window `o` begins at pixel o
// · stride - before; positions outside [0, input) are padding.
struct WindowAxis {
  int64_t input = 0;
  int64_t window = 0;
  int64_t stride = 1;
  int64_t before = 0;
  int64_t output = 0;

  // Number of pixels of padding behind the last pixel that the last window
  // reaches.
  int64_t after() const {
    return std::max<int64_t>((output - 1) * stride + window - input - before,
                             0);
  }

  // The windows [first, last) whose position `k` is a pixel and not padding.
  int64_t FirstInside(int64_t k) const {
    return std::min((std::max<int64_t>(before - k, 0) + stride - 1) / stride,
                    output);
  }
  int64_t LastInside(int64_t k) const {
    const int64_t end = input + before - k;
    return end <= 0 ? 0 : std::min((end + stride - 1) / stride, output);
  }
  // The pixel at position `k` of window `o`.
  int64_t Pixel(int64_t o, int64_t k) const { return o * stride + k - before; }
};

// Returns the axis with Keras's padding. kSame has ceil(input / stride) windows
// and, if its padding is odd, one more pixel at the end than at the beginning;
// kValid has only the windows that fit, perhaps none.
inline WindowAxis FitWindow(int64_t input, int64_t window, int64_t stride,
                            WindowPadding padding) {
  WindowAxis axis = {.input = input, .window = window, .stride = stride};
  if (padding == WindowPadding::kValid) {
    axis.output = input < window ? 0 : (input - window) / stride + 1;
    return axis;
  }
  axis.output = (input + stride - 1) / stride;
  axis.before =
      std::max<int64_t>((axis.output - 1) * stride + window - input, 0) / 2;
  return axis;
}

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_IMAGE_WINDOW_H_
