#ifndef PARASOL_ML_LAYER_CONVOLUTION_TRANSPOSED_WINDOW_H_
#define PARASOL_ML_LAYER_CONVOLUTION_TRANSPOSED_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/layer/image_window.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the axis of a convolution's window over an output, whose windows are
// the `input` pixels of a transposed convolution's input, as in Keras: SAME has
// outputs of input · stride pixels, VALID the pixels that any window reaches.
inline WindowAxis TransposedAxis(int64_t input, int64_t window, int64_t stride,
                                 WindowPadding padding) {
  const int64_t beyond = padding == WindowPadding::kSame
                             ? 0
                             : std::max<int64_t>(window - stride, 0);
  return FitWindow(input * stride + beyond, window, stride, padding);
}

// Returns the window that slides over the output of a transposed convolution of
// images of shape `image`: its `output`s are the image's pixels, its `input`s
// the layer's outputs, and its channels the image's.
//   InvalidArgument  as for FitImageWindow().
inline absl::StatusOr<ImageWindow> FitTransposedWindow(
    const Shape& image, absl::Span<const int64_t> size,
    absl::Span<const int64_t> stride, job::Padding padding) {
  // Checks all numbers; SAME fits any window.
  RETURN_IF_ERROR(FitImageWindow(image, size, stride,
                                 padding == job::VALID ? job::SAME : padding)
                      .status());
  const WindowPadding how =
      padding == job::SAME ? WindowPadding::kSame : WindowPadding::kValid;
  return ImageWindow{
      .height = TransposedAxis(image[0], size.front(), stride.front(), how),
      .width = TransposedAxis(image[1], size.back(), stride.back(), how),
      .channels = image[2]};
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_TRANSPOSED_WINDOW_H_
