#include "ml/kernel/interaction/dot_interaction.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status DotInteraction(Device& device, const FieldPairs& shape,
                            const float* x, float* y) {
  return PARASOL_DISPATCH(device, DotInteraction(device, shape, x, y));
}

absl::Status DotInteractionGradient(Device& device, const FieldPairs& shape,
                                    const float* x, const float* dy,
                                    float* dx) {
  return PARASOL_DISPATCH(device,
                          DotInteractionGradient(device, shape, x, dy, dx));
}

}  // namespace parasol
