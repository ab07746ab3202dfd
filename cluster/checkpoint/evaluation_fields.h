#ifndef PARASOL_CLUSTER_CHECKPOINT_EVALUATION_FIELDS_H_
#define PARASOL_CLUSTER_CHECKPOINT_EVALUATION_FIELDS_H_

#include "base/log_fields.h"
#include "cluster/checkpoint/evaluation_log.h"

namespace parasol {

// Returns the numbers of Describe(evaluation) as fields: step, the metrics each
// by its name, loss, examples, seconds. Pure.
LogFields EvaluationFields(const Evaluation& evaluation);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECKPOINT_EVALUATION_FIELDS_H_
