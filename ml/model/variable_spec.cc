#include "ml/model/variable_spec.h"

#include <functional>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "ml/model/resolved_model.h"

namespace parasol {

int64_t VariableSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1},
                         std::multiplies<>());
}

absl::StatusOr<std::vector<VariableSpec>> VariablesOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(ResolvedModel model, ResolveModel(spec));
  return std::move(model.variables);
}

}  // namespace parasol
