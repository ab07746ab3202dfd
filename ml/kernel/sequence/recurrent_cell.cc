#include "ml/kernel/sequence/recurrent_cell.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status LstmStep(Device& device, const CellStep& step,
                      const float* c_before, float* gates, float* c, float* h) {
  return PARASOL_DISPATCH(device,
                          LstmStep(device, step, c_before, gates, c, h));
}

absl::Status LstmStepGradient(Device& device, const CellStep& step,
                              const float* c_before, const float* gates,
                              const float* c, float* dc,
                              const CellGradient& gradient) {
  return PARASOL_DISPATCH(
      device, LstmStepGradient(device, step, c_before, gates, c, dc, gradient));
}

absl::Status GruStep(Device& device, const CellStep& step, float* gates,
                     float* h) {
  return PARASOL_DISPATCH(device, GruStep(device, step, gates, h));
}

absl::Status GruStepGradient(Device& device, const CellStep& step,
                             const float* gates, const CellGradient& gradient) {
  return PARASOL_DISPATCH(device,
                          GruStepGradient(device, step, gates, gradient));
}

}  // namespace parasol
