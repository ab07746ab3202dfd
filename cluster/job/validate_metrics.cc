#include "cluster/job/validate_metrics.h"

#include "absl/strings/str_cat.h"
#include "ml/metric/metric_spec.h"

namespace parasol {

absl::Status ValidateMetrics(const job::Model& model,
                             absl::Span<const OutputSpec> outputs) {
  const absl::Status fault = ResolveAllMetrics(model, outputs).status();
  if (fault.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model.", fault.message()));
}

}  // namespace parasol
