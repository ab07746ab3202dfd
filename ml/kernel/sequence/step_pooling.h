#ifndef PARASOL_ML_KERNEL_SEQUENCE_STEP_POOLING_H_
#define PARASOL_ML_KERNEL_SEQUENCE_STEP_POOLING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

enum class StepPooling { kAverage, kMax };

struct StepsShape {
  int64_t examples = 0;
  int64_t steps = 0;
  int64_t channels = 0;
};

// Computes y [examples, channels] from x [examples, steps, channels]: the mean
// or the largest value over the steps whose number in `mask` [examples, steps]
// is above .5; over all steps if `mask` is null. 0 where no step counts. NaN
// stays NaN. Both functions enqueue on the compute stream and return; outputs
// overlap no input. Error Unavailable: the device was lost.
absl::Status PoolSteps(Device& device, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y);

// Computes dx. Largest values that are equal share a gradient evenly, as in
// TensorFlow.
absl::Status PoolStepsGradient(Device& device, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status PoolSteps(Device& device, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y);
absl::Status PoolStepsGradient(Device& device, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx);
}  // namespace cpu

namespace cuda {
absl::Status PoolSteps(Device& device, StepPooling pooling,
                       const StepsShape& shape, const float* x,
                       const float* mask, float* y);
absl::Status PoolStepsGradient(Device& device, StepPooling pooling,
                               const StepsShape& shape, const float* x,
                               const float* mask, const float* y,
                               const float* dy, float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_SEQUENCE_STEP_POOLING_H_
