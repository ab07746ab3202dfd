#include "chief/kubeflow/trainer_status.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

// Adds a metric, unless the schema has no place for it.
void AddMetric(const std::string& name, double value, Json& metrics) {
  if (!std::isfinite(value) || metrics.size() >= kMaxTrainerMetrics ||
      name.size() > kMaxTrainerMetricBytes) {
    return;
  }
  metrics.push_back(
      {{"name", name}, {"value", absl::StrFormat("%.9g", value)}});
}

Json MetricsOf(const wire::JobStatus& status,
               const std::optional<Evaluation>& evaluation) {
  Json metrics = Json::array();
  AddMetric("global_step", static_cast<double>(status.global_step()), metrics);
  if (status.has_loss()) AddMetric("loss", status.loss(), metrics);
  if (status.has_trained()) {
    AddMetric("learning_rate", status.learning_rate(), metrics);
    if (status.examples_per_second() > 0) {
      AddMetric("examples_per_second", status.examples_per_second(), metrics);
    }
  }
  if (!evaluation) return metrics;
  AddMetric("eval_global_step", static_cast<double>(evaluation->global_step),
            metrics);
  AddMetric("eval_loss", evaluation->loss, metrics);
  for (const auto& [name, value] : evaluation->metrics) {
    AddMetric(absl::StrCat("eval_", name), value, metrics);
  }
  return metrics;
}

// Returns the part of the steps that is done, as a whole percentage: 100 for a
// complete job alone.
std::optional<int> Percentage(const wire::JobStatus& status) {
  if (status.phase() == wire::COMPLETE) return 100;
  if (status.end_step() <= 0) return std::nullopt;
  const double part = static_cast<double>(status.global_step()) /
                      static_cast<double>(status.end_step());
  return static_cast<int>(std::clamp(100 * part, 0., 99.));
}

std::string Text(const Json& body) {
  // Names come from the job's file.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string TrainerStatusBody(const wire::JobStatus& status,
                              std::optional<absl::Duration> left,
                              const std::optional<Evaluation>& evaluation,
                              absl::Time now) {
  Json trainer = Json::object();
  if (const auto percentage = Percentage(status)) {
    trainer["progressPercentage"] = *percentage;
  }
  if (status.phase() == wire::COMPLETE) left = absl::ZeroDuration();
  if (left) {
    trainer["estimatedRemainingSeconds"] = std::clamp<int64_t>(
        absl::ToInt64Seconds(absl::Ceil(*left, absl::Seconds(1))), 0,
        std::numeric_limits<int32_t>::max());
  }
  trainer["metrics"] = MetricsOf(status, evaluation);
  trainer["lastUpdatedTime"] =
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone());
  Json body = {{"trainerStatus", std::move(trainer)}};
  Json& sent = body["trainerStatus"]["metrics"];
  std::string text = Text(body);
  while (text.size() > kMaxTrainerStatusBytes && !sent.empty()) {
    sent.erase(sent.end() - 1);
    text = Text(body);
  }
  return text;
}

}  // namespace parasol
