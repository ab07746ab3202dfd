#ifndef PARASOL_ML_MODEL_CHECK_BATCH_H_
#define PARASOL_ML_MODEL_CHECK_BATCH_H_

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/model/graph.h"
#include "ml/model/input_views.h"

namespace parasol {

// Checks that `batch` has the inputs that the graph declares, in arrays that
// are not too large for a pass. Labels are left to Loss::CheckLabels().
//   InvalidArgument  names the input, the example and what is wrong.
absl::Status CheckBatch(const Graph& graph, const Batch& batch);
// Checks inputs in memory of someone else likewise, but for the shapes of
// examples, of which it knows only the number of elements.
absl::Status CheckInputs(const Graph& graph, const InputViews& inputs);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_CHECK_BATCH_H_
