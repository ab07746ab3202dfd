#ifndef PARASOL_ML_LAYER_IMAGE_WINDOW_H_
#define PARASOL_ML_LAYER_IMAGE_WINDOW_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/kernel/image/window.h"
#include "ml/layer/layer.h"
#include "proto/job.pb.h"

namespace parasol {

// The window that slides over the images that come into a layer.
struct ImageWindow {
  WindowAxis height;
  WindowAxis width;
  int64_t channels = 0;

  Shape OutputShape(int64_t filters) const {
    return {height.output, width.output, filters};
  }
};

// Checks that `image` is an image.
//   InvalidArgument  `image` is not [height, width, channels].
absl::Status CheckImage(const Shape& image);

// Returns the window for images of shape `image`. `size` and `stride` are
// height and width, or one number for both. An empty `stride` stands for
// `default_stride`. Padding is kValid unless it is set.
//   InvalidArgument  `image` is not [height, width, channels], a number is
//                    missing or out of range, or no window fits.
absl::StatusOr<ImageWindow> FitImageWindow(
    const Shape& image, absl::Span<const int64_t> size,
    absl::Span<const int64_t> stride, absl::Span<const int64_t> default_stride,
    job::Padding padding);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_IMAGE_WINDOW_H_
