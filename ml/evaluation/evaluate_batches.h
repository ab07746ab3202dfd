#ifndef PARASOL_ML_EVALUATION_EVALUATE_BATCHES_H_
#define PARASOL_ML_EVALUATION_EVALUATE_BATCHES_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/input/feature/batch.h"
#include "ml/model/model.h"

namespace parasol {

// Evaluates batches with several models of the same values, each on a thread of
// its own and the first one on the caller's. `next` returns the batches in
// their order, each valid until its next call, and null at the end;
// `read_rows` writes a batch's rows; `add` takes the results in the batches'
// order, as if there were one model. No two calls of these functions overlap.
// Returns the first error of a function or a model; the others then end after
// the batch that they evaluate.
absl::Status EvaluateBatches(
    absl::Span<Model* const> models,
    absl::FunctionRef<absl::StatusOr<const Batch*>()> next,
    absl::FunctionRef<absl::Status(absl::Span<const StagedBatch::Rows>)>
        read_rows,
    absl::FunctionRef<absl::Status(const Batch&, const EvaluatedBatch&)> add);

}  // namespace parasol

#endif  // PARASOL_ML_EVALUATION_EVALUATE_BATCHES_H_
