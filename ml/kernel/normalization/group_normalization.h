#ifndef PARASOL_ML_KERNEL_NORMALIZATION_GROUP_NORMALIZATION_H_
#define PARASOL_ML_KERNEL_NORMALIZATION_GROUP_NORMALIZATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/kernel/normalization/layer_normalization.h"

namespace parasol {

// An array [examples, pixels, channels] whose channels are groups of `width`
// neighbours each.
struct GroupedChannels {
  int64_t examples = 0;
  int64_t pixels = 1;
  int64_t groups = 1;
  int64_t width = 0;

  int64_t channels() const { return groups * width; }
  // Number of pairs of an example and a group, each with its moments.
  int64_t rows() const { return examples * groups; }
  int64_t size() const { return examples * pixels * channels(); }
};

struct GroupForm {
  float epsilon = 0;
  // False: the mean is taken for 0, and the variance is the mean square.
  bool centered = true;
};

// All functions of this header enqueue on the compute stream and return;
// outputs overlap no input. Error Unavailable: the device was lost.

// Computes y = z · gamma + beta with z = (x - mean) · inverse_deviation, from
// the moments over the pixels and channels of each example's groups. `gamma`
// and `beta` are [channels]; a null one is left out.
absl::Status NormalizeGroups(Device& device, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y);

// Computes dgamma = Σ over examples and pixels of dy · z, and dbeta = Σ dy. A
// gradient whose array is null is not computed.
absl::Status NormalizeGroupsVariableGradients(
    Device& device, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta);

// Computes dx = inverse_deviation · (g - mean of g - z · mean of g · z) with g
// = dy · gamma, and without the mean of g if the form is not centered.
absl::Status NormalizeGroupsInputGradient(Device& device,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status NormalizeGroups(Device& device, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y);
absl::Status NormalizeGroupsVariableGradients(
    Device& device, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta);
absl::Status NormalizeGroupsInputGradient(Device& device,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx);
}  // namespace cpu

namespace cuda {
absl::Status NormalizeGroups(Device& device, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y);
absl::Status NormalizeGroupsVariableGradients(
    Device& device, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta);
absl::Status NormalizeGroupsInputGradient(Device& device,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_NORMALIZATION_GROUP_NORMALIZATION_H_
