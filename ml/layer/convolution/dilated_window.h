#ifndef PARASOL_ML_LAYER_CONVOLUTION_DILATED_WINDOW_H_
#define PARASOL_ML_LAYER_CONVOLUTION_DILATED_WINDOW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/field_checks.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/kernel/image/depthwise.h"
#include "ml/layer/field/affine_fields.h"
#include "ml/layer/image_window.h"
#include "ml/layer/layer.h"

namespace parasol {

// Largest number of elements of a kernel: CUDA kernels count in int.
inline constexpr int64_t kMaxKernelElements = kMaxInt;

// Sets the unset fields that depthwise_conv2d and separable_conv2d have in
// common.
template <typename Depthwise>
void FillDepthwise(Depthwise& spec) {
  FillAffine(spec);
  FillPadding(spec);
  PARASOL_SET_DEFAULT(spec, depth_multiplier, 1);
  if (spec.stride().empty()) spec.add_stride(1);
  if (spec.dilation_rate().empty()) spec.add_dilation_rate(1);
}

// Checks the ranges of these fields.
//   InvalidArgument  "<path>.<field>: …", with the value.
template <typename Depthwise>
absl::Status CheckDepthwise(const std::string& path, const Depthwise& spec) {
  RETURN_IF_ERROR(CheckWindow(path, spec));
  RETURN_IF_ERROR(RequirePixels(absl::StrCat(path, ".dilation_rate"),
                                spec.dilation_rate()));
  RETURN_IF_ERROR(RequireInRange(absl::StrCat(path, ".depth_multiplier"),
                                 spec.depth_multiplier(), 1, kMaxInt));
  return CheckProduct(path, spec);
}

// Returns the sizes, of one example, of the depthwise convolution of images of
// shape `image` that the filled fields of `spec` describe.
//   InvalidArgument  `image` is no image, no window fits, or the kernel is too
//                    large.
template <typename Depthwise>
absl::StatusOr<DepthwiseShape> FitDepthwise(const Shape& image,
                                            const Depthwise& spec) {
  const auto& size = spec.kernel_size();
  const auto& dilation = spec.dilation_rate();
  if (size.empty() || dilation.empty() || spec.depth_multiplier() < 1) {
    return absl::InvalidArgumentError(
        "kernel_size, dilation_rate and depth_multiplier must be positive");
  }
  const int64_t down = *dilation.begin();
  const int64_t across = *dilation.rbegin();
  // The pixels that the windows reach over.
  const int64_t reach[] = {(*size.begin() - 1) * down + 1,
                           (*size.rbegin() - 1) * across + 1};
  ASSIGN_OR_RETURN(const ImageWindow window,
                   FitImageWindow(image, reach, spec.stride(), spec.padding()));
  const DepthwiseShape shape = {.examples = 1,
                                .height = window.height,
                                .width = window.width,
                                .height_dilation = down,
                                .width_dilation = across,
                                .channels = window.channels,
                                .multiplier = spec.depth_multiplier()};
  const int64_t elements = shape.rows() * shape.columns();
  if (shape.channels <= kMaxKernelElements / elements &&
      shape.multiplier <= kMaxKernelElements / (elements * shape.channels)) {
    return shape;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("depth_multiplier ", shape.multiplier, " of ", shape.rows(),
                   "x", shape.columns(), "x", shape.channels,
                   " elements: together they must be "
                   "1 to ",
                   kMaxKernelElements));
}

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_CONVOLUTION_DILATED_WINDOW_H_
