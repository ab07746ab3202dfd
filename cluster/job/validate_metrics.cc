#include "cluster/job/validate_metrics.h"

#include "absl/strings/str_cat.h"
#include "ml/metric/metric_spec.h"

namespace parasol {

absl::Status ValidateMetrics(const job::Model& model, const LossSpec& loss) {
  const absl::Status fault = ResolveMetrics(model, loss).status();
  if (fault.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("model.", fault.message()));
}

}  // namespace parasol
