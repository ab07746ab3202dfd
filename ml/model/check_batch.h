#ifndef PARASOL_ML_MODEL_CHECK_BATCH_H_
#define PARASOL_ML_MODEL_CHECK_BATCH_H_

#include "absl/status/status.h"
#include "ml/input/feature/batch.h"
#include "ml/model/graph.h"

namespace parasol {

// That `batch` has what the graph's inputs say, in arrays that no pass is too
// large for. Labels are the loss's to check.
//   InvalidArgument  names the input, the example and what is wrong.
absl::Status CheckBatch(const Graph& graph, const Batch& batch);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_CHECK_BATCH_H_
