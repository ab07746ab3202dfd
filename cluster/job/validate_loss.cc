#include "cluster/job/validate_loss.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/loss/loss_spec.h"
#include "ml/metric/metric_spec.h"
#include "ml/model/outputs_of.h"

namespace parasol {
namespace {

absl::Status OfModel(const absl::Status& fault) {
  return absl::InvalidArgumentError(absl::StrCat("model.", fault.message()));
}

}  // namespace

absl::Status ValidateLoss(const job::Model& model) {
  ASSIGN_OR_RETURN(const int64_t outputs, OutputsOf(model));
  const absl::StatusOr<LossSpec> loss = ResolveLoss(model.loss(), outputs);
  if (!loss.ok()) return OfModel(loss.status());
  const absl::Status metrics = ResolveMetrics(model, *loss).status();
  return metrics.ok() ? absl::OkStatus() : OfModel(metrics);
}

}  // namespace parasol
