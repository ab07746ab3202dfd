#ifndef PARASOL_ML_LOSS_LOSS_KINDS_H_
#define PARASOL_ML_LOSS_LOSS_KINDS_H_

#include <vector>

#include "absl/types/span.h"
#include "ml/input/feature/model_inputs.h"
#include "ml/loss/loss_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns all kinds of losses, each once.
absl::Span<const LossKind* const> LossKinds();

// Returns the kind of `loss`; null if it has none.
const LossKind* KindOf(const job::Loss& loss);

// Returns false if the loss reads no labels, so that data need have none.
bool ReadsLabels(const job::Loss& loss);

// Returns true if the loss of an example depends on the other examples of its
// batch.
bool ComparesExamples(const job::Loss& loss);

// Returns the columns that the loss reads beside labels, each once.
std::vector<ExampleColumn> ColumnsOf(const job::Loss& loss);

// Sets the unset fields of the chosen kind's message.
void FillDefaults(job::Loss& loss);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_KINDS_H_
