#include "ml/model/variables_of.h"

#include <utility>

#include "base/status_macros.h"
#include "ml/model/graph.h"

namespace parasol {

absl::StatusOr<std::vector<VariableSpec>> VariablesOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(Graph graph, ResolveGraph(spec));
  return std::move(graph.variables);
}

}  // namespace parasol
