#include "ml/loss/output_link.h"

#include <algorithm>
#include <cmath>

namespace parasol {
namespace {

void Sigmoid(absl::Span<float> outputs) {
  for (float& output : outputs) {
    output = static_cast<float>(1 / (1 + std::exp(-double{output})));
  }
}

void Softmax(absl::Span<float> outputs) {
  const float largest = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (const float output : outputs) sum += std::exp(double{output} - largest);
  for (float& output : outputs) {
    output = static_cast<float>(std::exp(double{output} - largest) / sum);
  }
}

}  // namespace

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

void ApplyLink(OutputLink link, absl::Span<float> outputs) {
  if (link == OutputLink::kSigmoid) Sigmoid(outputs);
  if (link == OutputLink::kSoftmax) Softmax(outputs);
}

}  // namespace parasol
