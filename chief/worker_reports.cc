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
  Count(heartbeat);
}

void WorkerReports::Count(const wire::HeartbeatRequest& heartbeat) {
  const int64_t examples = heartbeat.loss_examples();
  if (examples < 0 || !std::isfinite(heartbeat.loss_sum())) return;
  const auto [it, is_new] = totals_.try_emplace(heartbeat.task().incarnation());
  Totals& known = it->second;
  // A late message says nothing new.
  if (!is_new && examples <= known.examples) return;
  // What a worker has done before its first report was for another chief.
  if (!is_new) {
    loss_sum_ += heartbeat.loss_sum() - known.loss_sum;
    loss_examples_ += examples - known.examples;
  }
  known = {heartbeat.loss_sum(), examples};
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
