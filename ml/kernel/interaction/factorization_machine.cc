#include "ml/kernel/interaction/factorization_machine.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status FactorizationMachine(Device& device, const Interaction& shape,
                                  const float* x, float* y) {
  return PARASOL_DISPATCH(device, FactorizationMachine(device, shape, x, y));
}

absl::Status FactorizationMachineGradient(Device& device,
                                          const Interaction& shape,
                                          const float* x, const float* dy,
                                          float* dx) {
  return PARASOL_DISPATCH(
      device, FactorizationMachineGradient(device, shape, x, dy, dx));
}

}  // namespace parasol
