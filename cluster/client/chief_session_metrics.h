#ifndef PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_METRICS_H_
#define PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_METRICS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"

namespace parasol {

// The metrics of a task's session with the chief. Each role has its own names.
struct ChiefSessionMetrics {
  ChiefSessionMetrics(MetricsRegistry& registry, const std::string& role)
      : chief_reachable(registry.AddGauge(
            absl::StrCat("parasol_", role, "_chief_reachable"),
            "1 if the chief answered the last call.")),
        missing_tasks(registry.AddGauge(
            absl::StrCat("parasol_", role, "_missing_tasks"),
            "Tasks that the cluster waits for, as the chief says.")),
        registrations_total(registry.AddCounter(
            absl::StrCat("parasol_", role, "_registrations_total"),
            "Answered registrations with the chief.")) {}

  Gauge chief_reachable;
  Gauge missing_tasks;
  Counter registrations_total;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_METRICS_H_
