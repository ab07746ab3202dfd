#include "ml/kernel/loss/candidate_softmax.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status CandidateSoftmax(Device& device, const CandidateBatch& batch,
                              bool with_gradient, float* products,
                              float* losses) {
  return PARASOL_DISPATCH(
      device, CandidateSoftmax(device, batch, with_gradient, products, losses));
}

}  // namespace parasol
