#include "chief/worker_reports.h"

#include <cmath>

namespace parasol {

void WorkerReports::Keep(const wire::HeartbeatRequest& heartbeat) {
  Report& report = reports_[heartbeat.task().index()];
  if (std::isfinite(heartbeat.loss()) && heartbeat.has_loss()) {
    report.loss = heartbeat.loss();
  }
  const double speed = heartbeat.examples_per_second();
  if (heartbeat.has_examples_per_second() && speed >= 0 &&
      std::isfinite(speed)) {
    report.examples_per_second = speed;
  }
}

void WorkerReports::Forget(int worker) { reports_.erase(worker); }

std::optional<double> WorkerReports::loss() const {
  double sum = 0;
  int count = 0;
  for (const auto& [worker, report] : reports_) {
    if (!report.loss) continue;
    sum += *report.loss;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

double WorkerReports::examples_per_second() const {
  double sum = 0;
  for (const auto& [worker, report] : reports_) {
    sum += report.examples_per_second;
  }
  return sum;
}

}  // namespace parasol
