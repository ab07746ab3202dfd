#ifndef PARASOL_ML_LAYER_IMAGE_WINDOW_H_
#define PARASOL_ML_LAYER_IMAGE_WINDOW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
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

// Chooses the padding VALID unless one is chosen.
template <typename Window>
void FillPadding(Window& window) {
  if (window.padding() == job::PADDING_UNSPECIFIED) {
    window.set_padding(job::VALID);
  }
}

// Checks that `numbers`, at `path` in the job, are height and width, or one
// number for both, each a number of pixels in its range.
//   InvalidArgument  "<path>: …", with the value.
absl::Status RequirePixels(const std::string& path,
                           absl::Span<const int64_t> numbers);

// Checks the fields of a window over images at `path` in the job: kernel_size,
// stride and padding, which is not CAUSAL.
//   InvalidArgument  "<path>.<field>: …", with the value.
absl::Status RequireImagePadding(const std::string& path, job::Padding padding);
template <typename Window>
absl::Status CheckWindow(const std::string& path, const Window& window) {
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".kernel_size"), window.kernel_size()));
  RETURN_IF_ERROR(
      RequirePixels(absl::StrCat(path, ".stride"), window.stride()));
  return RequireImagePadding(path, window.padding());
}

// Returns the window for images of shape `image`. `size` and `stride` are
// height and width, or one number for both. Padding is kValid unless it is set.
//   InvalidArgument  `image` is not [height, width, channels], a number is
//                    missing or out of range, or no window fits.
absl::StatusOr<ImageWindow> FitImageWindow(const Shape& image,
                                           absl::Span<const int64_t> size,
                                           absl::Span<const int64_t> stride,
                                           job::Padding padding);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_IMAGE_WINDOW_H_
