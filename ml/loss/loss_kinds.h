#ifndef PARASOL_ML_LOSS_LOSS_KINDS_H_
#define PARASOL_ML_LOSS_LOSS_KINDS_H_

#include "absl/types/span.h"
#include "ml/loss/loss_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns all kinds of losses, each once.
absl::Span<const LossKind* const> LossKinds();

// Returns the kind of `loss`; null if it has none.
const LossKind* KindOf(const job::Loss& loss);

// Sets the unset fields of the chosen kind's message.
void FillDefaults(job::Loss& loss);

}  // namespace parasol

#endif  // PARASOL_ML_LOSS_LOSS_KINDS_H_
