#include "ml/kernel/softmax_cross_entropy.h"

#include "base/log.h"
#include "ml/kernel/dispatch.h"

namespace parasol {

absl::Status SoftmaxCrossEntropy(Device& device, MatrixView logits,
                                 const int32_t* labels,
                                 const CrossEntropyOutputs& out) {
  CHECK_GT(logits.columns, 0);
  CHECK(out.loss != nullptr && out.correct != nullptr);
  return PARASOL_DISPATCH(device,
                          SoftmaxCrossEntropy(device, logits, labels, out));
}

}  // namespace parasol
