#include "ml/kernel/normalization/group_normalization.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status NormalizeGroups(Device& device, const GroupedChannels& shape,
                             GroupForm form, const float* x, const float* gamma,
                             const float* beta, RowMoments moments, float* y) {
  return PARASOL_DISPATCH(
      device, NormalizeGroups(device, shape, form, x, gamma, beta, moments, y));
}

absl::Status NormalizeGroupsVariableGradients(
    Device& device, const GroupedChannels& shape, const float* x,
    RowMoments moments, const float* dy, float* dgamma, float* dbeta) {
  return PARASOL_DISPATCH(
      device, NormalizeGroupsVariableGradients(device, shape, x, moments, dy,
                                               dgamma, dbeta));
}

absl::Status NormalizeGroupsInputGradient(Device& device,
                                          const GroupedChannels& shape,
                                          GroupForm form, const float* x,
                                          const float* gamma,
                                          RowMoments moments, const float* dy,
                                          float* dx) {
  return PARASOL_DISPATCH(
      device, NormalizeGroupsInputGradient(device, shape, form, x, gamma,
                                           moments, dy, dx));
}

}  // namespace parasol
