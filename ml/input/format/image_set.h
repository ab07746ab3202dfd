#ifndef PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_
#define PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/input/format/example_set.h"
#include "ml/input/format/image_transform.h"
#include "proto/job.pb.h"

namespace parasol {

// The name of the only column of a set of images.
inline constexpr absl::string_view kImageColumn = "image";
// The shape of CIFAR-10's images.
inline constexpr ImageShape kCifarShape = {
    .height = 32, .width = 32, .channels = 3};

// Sets of images of bytes, which become float32, and class numbers. An input's
// shape must be the images' shape, apart from axes of 1, or their number of
// pixels.
//
// Both functions fail with
//   NotFound         a file is missing.
//   DataLoss         a file is corrupt: names it and the offset.
//   InvalidArgument  an input or `transform` does not fit.

// Opens files in MNIST's format (idx_format.h). A corrupt file is an error even
// if corrupt records are skipped, because images and labels can no longer be
// matched.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenIdxSet(
    const job::IdxDataset& idx, const job::ImageTransform& transform,
    const SetOptions& options);

// Opens files in CIFAR-10's binary format:
//   record = label:u8 (pixel:u8)^(3 * 32 * 32)    [channels, height, width]
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCifarSet(
    const job::CifarDataset& cifar, const job::ImageTransform& transform,
    const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_
