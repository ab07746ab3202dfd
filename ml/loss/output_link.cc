#include "ml/loss/output_link.h"

namespace parasol {

OutputLink LinkOf(const job::Loss& loss) {
  switch (loss.kind_case()) {
    case job::Loss::kSparseCategoricalCrossentropy:
    case job::Loss::kCategoricalCrossentropy:
      return OutputLink::kSoftmax;
    case job::Loss::kBinaryCrossentropy:
      if (!loss.binary_crossentropy().from_logits()) break;
      return OutputLink::kSigmoid;
    case job::Loss::kBinaryFocalCrossentropy:
      return OutputLink::kSigmoid;
    case job::Loss::kMeanSquaredError:
    case job::Loss::kMeanAbsoluteError:
    case job::Loss::kHuber:
    case job::Loss::kHinge:
    case job::Loss::kPoisson:
    case job::Loss::kPairwiseLogistic:
    case job::Loss::kInBatchSoftmax:
    case job::Loss::kCustom:
    case job::Loss::KIND_NOT_SET:
      break;
  }
  return OutputLink::kNone;
}

}  // namespace parasol
