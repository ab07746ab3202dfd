#include "ml/model/variables_of.h"

#include <utility>

#include "base/status_macros.h"
#include "ml/model/resolved_model.h"

namespace parasol {

absl::StatusOr<std::vector<VariableSpec>> VariablesOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(ResolvedModel model, ResolveModel(spec));
  return std::move(model.variables);
}

}  // namespace parasol
