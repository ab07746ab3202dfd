#ifndef PARASOL_ML_LOSS_LOSS_H_
#define PARASOL_ML_LOSS_LOSS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/loss/loss_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// What training minimises: a number for each example, from what the model makes
// of it and its labels. Immutable, thread-safe.
class Loss {
 public:
  // `outputs`: of the model, for one example. Errors of ResolveLoss().
  static absl::StatusOr<std::unique_ptr<const Loss>> Create(
      const job::Loss& loss, int64_t outputs);

  // Labels of one example: 1 for a class number.
  int64_t label_width() const { return spec_.label_width; }

  //   InvalidArgument  the batch has another number of labels, or one that has
  //                    no meaning here: names the example and the value.
  absl::Status CheckLabels(const Batch& batch) const;

  // Arrays are in the device's memory: outputs [examples, outputs], labels
  // [examples, label_width()] that CheckLabels() has found good, weights
  // [examples] or null: all 1. Writes `losses` [examples], each times its
  // weight, and unless it is null `gradient` [examples, outputs]: of the mean
  // of `losses`, which divides by the number of examples, not by the sum of
  // weights. Enqueues on the compute stream and returns; allocates nothing.
  //   Unavailable  the device was lost.
  absl::Status Compute(Device& device, const float* outputs,
                       const float* labels, const float* weights,
                       int64_t examples, float* losses, float* gradient) const;

 private:
  explicit Loss(const LossSpec& spec) : spec_(spec) {}

  const LossSpec spec_;
};

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_H_
