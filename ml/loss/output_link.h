#ifndef PARASOL_ML_LOSS_OUTPUT_LINK_H_
#define PARASOL_ML_LOSS_OUTPUT_LINK_H_

#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// The function that makes probabilities of a model's outputs, by its loss.
enum class OutputLink {
  kNone,  // the outputs are the predictions
  kSigmoid,
  kSoftmax,  // softmax over an example's outputs
};

// Returns the link of `loss`.
OutputLink LinkOf(const job::Loss& loss);

// Makes probabilities of the outputs of one example, computed in double, in
// their place. Changes nothing without a link.
void ApplyLink(OutputLink link, absl::Span<float> outputs);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_OUTPUT_LINK_H_
