#include "ml/metric/custom_metric.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/custom/code_registry.h"

namespace parasol {
namespace {

// Keys in a line of evaluations.jsonl that are no metrics.
constexpr const char* kOtherKeys[] = {"loss",    "global_step", "examples",
                                      "seconds", "checkpoint",  "final",
                                      "run_id",  "chief_epoch"};

CodeRegistry<CustomMetricFactory>& Registry() {
  static auto* const registry = new CodeRegistry<CustomMetricFactory>(
      "metric", "worker, evaluator and parasol");
  return *registry;
}

}  // namespace

CustomMetricRegistration::CustomMetricRegistration(
    absl::string_view type, CustomMetricFactory factory) {
  CHECK(IsCodeName(type)) << "a custom metric is called \"" << type << "\"";
  Registry().Add(type, std::move(factory));
}

absl::StatusOr<std::unique_ptr<CustomMetric>> MakeCustomMetric(
    const job::Custom& spec, const LossSpec& loss) {
  const CustomMetricFactory* const factory = Registry().Find(spec.type());
  if (factory == nullptr) {
    return absl::FailedPreconditionError(Registry().Lacks(spec.type()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<CustomMetric> metric, (*factory)(spec, loss),
                   _ << "custom \"" << spec.type() << "\"");
  CHECK(metric != nullptr) << "custom metric " << spec.type();
  return metric;
}

absl::Status CheckCustomMetric(const job::Custom& spec, const LossSpec& loss) {
  // Results are named so in logs, files and the policies of a job.
  if (!IsCodeName(spec.type())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "custom.type is \"", absl::CHexEscape(spec.type()), "\", not 1 to ",
        kMaxCodeNameBytes, " letters, digits and '_', the name of the result"));
  }
  if (std::find(std::begin(kOtherKeys), std::end(kOtherKeys), spec.type()) !=
          std::end(kOtherKeys) ||
      job::Metric::descriptor()->FindFieldByName(spec.type()) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("custom.type is \"", spec.type(),
                     "\", as another result or field of evaluations.jsonl is "
                     "called; register it under another name"));
  }
  if (Registry().Find(spec.type()) == nullptr || !loss.label_is_known()) {
    return absl::OkStatus();
  }
  return MakeCustomMetric(spec, loss).status();
}

}  // namespace parasol
