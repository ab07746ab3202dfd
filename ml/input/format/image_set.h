#ifndef PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_
#define PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ml/input/format/example_set.h"
#include "proto/job.pb.h"

namespace parasol {

// Images of bytes, which become float32, and class numbers. An input's shape is
// that of the images, apart from axes of 1, or their number of pixels.
//
// Both fail with
//   NotFound         a file is missing.
//   DataLoss         a file is corrupt: names it and the offset.
//   InvalidArgument  an input does not fit, or `transform`.

// MNIST's format: see idx_format.h. A corrupt file is an error even where
// records are skipped: there is no telling which label belongs to what.
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenIdxSet(
    const job::IdxDataset& idx, const job::ImageTransform& transform,
    const SetOptions& options);

// CIFAR-10's binary format:
//   record = label:u8 (pixel:u8)^(3 * 32 * 32)    [channels, height, width]
absl::StatusOr<std::shared_ptr<const ExampleSet>> OpenCifarSet(
    const job::CifarDataset& cifar, const job::ImageTransform& transform,
    const SetOptions& options);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FORMAT_IMAGE_SET_H_
