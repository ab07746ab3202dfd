#ifndef PARASOL_ML_MODEL_VARIABLES_OF_H_
#define PARASOL_ML_MODEL_VARIABLES_OF_H_

#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the variables of a model, in the order of its layers, kernel before
// bias. Needs no device: the chief places variables without building the model.
//   InvalidArgument  the spec is not a model: names the layer.
absl::StatusOr<std::vector<VariableSpec>> VariablesOf(const job::Model& spec);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_VARIABLES_OF_H_
