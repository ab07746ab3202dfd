#include "ml/model/outputs_of.h"

#include "base/status_macros.h"
#include "ml/model/graph.h"

namespace parasol {

absl::StatusOr<int64_t> OutputsOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(const Graph graph, ResolveGraph(spec));
  return graph.outputs();
}

}  // namespace parasol
