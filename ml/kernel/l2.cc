#include "ml/kernel/l2.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status L2Losses(Device& device, absl::Span<const L2Term> terms,
                      float* losses) {
  return PARASOL_DISPATCH(device, L2Losses(device, terms, losses));
}

absl::Status AddL2Gradients(Device& device, absl::Span<const L2Term> terms) {
  return PARASOL_DISPATCH(device, AddL2Gradients(device, terms));
}

}  // namespace parasol
