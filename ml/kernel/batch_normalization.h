#ifndef PARASOL_ML_KERNEL_BATCH_NORMALIZATION_H_
#define PARASOL_ML_KERNEL_BATCH_NORMALIZATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"

namespace parasol {

// Normalises each channel of x [rows, channels] over the rows (Ioffe and
// Szegedy 2015):
//   y = epilogue(gamma · (x - mean) / sqrt(variance + epsilon) + beta)
// Gamma is ones and beta zeros where they are null.
//
// Everything is enqueued on the compute stream; outputs overlap no input.
// Keeps the batch's mean and variance from ForwardTraining() for the gradients.
// Borrows the device. Not thread-safe. Unavailable: the device was lost.
class BatchNormalization {
 public:
  struct Shape {
    int64_t rows = 0;
    int64_t channels = 0;

    int64_t size() const { return rows * channels; }
  };
  struct Options {
    double epsilon = 1e-3;
    Epilogue epilogue = Epilogue::kNone;
  };
  // Arrays [channels]. What follows the batches: moving averages.
  struct Moments {
    const float* mean = nullptr;
    const float* variance = nullptr;
  };
  struct MutableMoments {
    float* mean = nullptr;
    float* variance = nullptr;
  };

  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<BatchNormalization>> Create(
      Device& device, const Shape& shape, const Options& options);
  virtual ~BatchNormalization() = default;

  // With mean and variance of `x` itself, Σ (x - mean)² / rows.
  virtual absl::Status ForwardTraining(const float* x, const float* gamma,
                                       const float* beta, float* y) = 0;
  // A variance below 0, to which changes that came late may have taken a moving
  // one, is as one of 0.
  virtual absl::Status ForwardEvaluation(const float* x, const float* gamma,
                                         const float* beta,
                                         const Moments& moving, float* y) = 0;

  // change = (1 - momentum) · (moving - batch's): to be subtracted from
  // `moving`. The batch's variance is the unbiased one here,
  // Σ (x - mean)² / (rows - 1), as in Keras; of a single row it is 0.
  virtual absl::Status MomentsChange(const Moments& moving, double momentum,
                                     const MutableMoments& change) = 0;

  // `x` is that of the last ForwardTraining(), `dy` the gradient by its y,
  // behind the epilogue. A gradient that is null is not wanted.
  virtual absl::Status VariableGradients(const float* x, const float* dy,
                                         float* dgamma, float* dbeta) = 0;
  // After VariableGradients(), with the same arguments.
  virtual absl::Status InputGradient(const float* x, const float* dy,
                                     float* dx) = 0;
};

// What BatchNormalization::Create() chooses from.
namespace cpu {
absl::StatusOr<std::unique_ptr<BatchNormalization>> NewBatchNormalization(
    Device& device, const BatchNormalization::Shape& shape,
    const BatchNormalization::Options& options);
}  // namespace cpu

namespace cuda {
absl::StatusOr<std::unique_ptr<BatchNormalization>> NewBatchNormalization(
    Device& device, const BatchNormalization::Shape& shape,
    const BatchNormalization::Options& options);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_BATCH_NORMALIZATION_H_
