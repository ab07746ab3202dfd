#ifndef PARASOL_ML_KERNEL_NORMALIZATION_BATCH_NORMALIZATION_H_
#define PARASOL_ML_KERNEL_NORMALIZATION_BATCH_NORMALIZATION_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/device.h"
#include "ml/kernel/affine.h"

namespace parasol {

// Normalises each channel of x [rows, channels] over the rows (Ioffe and
// Szegedy 2015):
//   y = epilogue(gamma · (x - mean) / sqrt(variance + epsilon) + beta + term)
// A null `gamma` stands for ones, a null `beta` for zeros. A term, as at the
// end of a residual block, is there only if Options::has_term says so.
//
// The arrays of x, y and their gradients have one type; sums and moments are
// float32. All work is enqueued on the compute stream; outputs overlap no
// input. ForwardTraining() keeps the batch's mean and variance for the
// gradients. Borrows the device. Not thread-safe. Error Unavailable: the device
// was lost.
class BatchNormalization {
 public:
  struct Shape {
    int64_t rows = 0;
    int64_t channels = 0;

    int64_t size() const { return rows * channels; }
    // Returns the number by which a batch's variance, Σ (x - mean)² / rows, is
    // multiplied to make it the unbiased one, Σ (x - mean)² / (rows - 1).
    double unbiased() const { return rows > 1 ? rows / (rows - 1.0) : 1.0; }
  };
  struct Options {
    double epsilon = 1e-3;
    Epilogue epilogue = Epilogue::kNone;
    bool has_term = false;
  };
  // Moving averages of the batches' moments. Arrays [channels].
  struct Moments {
    const float* mean = nullptr;
    const float* variance = nullptr;
  };
  struct MutableMoments {
    float* mean = nullptr;
    float* variance = nullptr;
  };
  // Arrays for gradients by gamma, beta and x. One that is null is not written.
  struct Gradients {
    float* dgamma = nullptr;
    float* dbeta = nullptr;
    Elements dx = nullptr;
    // True for gradients of ForwardEvaluation(): its moments are constants.
    bool of_evaluation = false;
  };
  // The change of moving moments by a batch's: change = (1 - momentum) ·
  // (moving - batch's), which the caller subtracts from `moving`. The batch's
  // variance is the unbiased one here, as in Keras; for a single row it is 0.
  // Not computed if `change` is null.
  struct MomentsUpdate {
    Moments moving;
    double momentum = 0;
    MutableMoments change;
  };

  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<BatchNormalization>> Create(
      Device& device, const Shape& shape, const Options& options);
  virtual ~BatchNormalization() = default;

  // Normalises with the mean and the variance, Σ (x - mean)² / rows, of `x`.
  virtual absl::Status ForwardTraining(ConstElements x, const float* gamma,
                                       const float* beta, ConstElements term,
                                       Elements y) = 0;
  // Normalises with the `moving` moments. A moving variance may be below 0,
  // because changes to it can arrive late; it then counts as 0.
  virtual absl::Status ForwardEvaluation(ConstElements x, const float* gamma,
                                         const float* beta,
                                         const Moments& moving,
                                         ConstElements term, Elements y) = 0;

  // Writes the gradients and the moving moments' change. `x` is the input of
  // the last forward pass, and `dy` the gradient by its output y, after the
  // epilogue. Not for one that has a term.
  virtual absl::Status Backward(ConstElements x, ConstElements dy,
                                const Gradients& gradients,
                                const MomentsUpdate& update) = 0;
  // Does so for a normalization that has a term: `y` is the output of the last
  // forward pass. Overwrites `dy` with the gradient before the epilogue, which
  // is also the term's gradient.
  virtual absl::Status BackwardOfSum(ConstElements x, ConstElements y,
                                     Elements dy, const Gradients& gradients,
                                     const MomentsUpdate& update) = 0;

  // Writes the moving moments' change by the batch of the last
  // ForwardTraining().
  virtual absl::Status ChangeMoments(const MomentsUpdate& update) = 0;

  // Does so without a term.
  absl::Status ForwardTraining(ConstElements x, const float* gamma,
                               const float* beta, Elements y) {
    return ForwardTraining(x, gamma, beta, /*term=*/nullptr, y);
  }
  absl::Status ForwardEvaluation(ConstElements x, const float* gamma,
                                 const float* beta, const Moments& moving,
                                 Elements y) {
    return ForwardEvaluation(x, gamma, beta, moving, /*term=*/nullptr, y);
  }
};

// The implementations for CPU and CUDA devices. BatchNormalization::Create()
// calls the one for `device`.
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

#endif  // PARASOL_ML_KERNEL_NORMALIZATION_BATCH_NORMALIZATION_H_
