#include "ml/model/outputs_of.h"

#include "base/status_macros.h"
#include "ml/model/resolved_model.h"

namespace parasol {

absl::StatusOr<int64_t> OutputsOf(const job::Model& spec) {
  ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(spec));
  return model.classes();
}

}  // namespace parasol
