#include "coordinator/worker_reports.h"

#include <cmath>
#include <cstdint>
#include <utility>

namespace parasol {
namespace {

// Sums of more might overflow; no data set has so many.
constexpr int64_t kMaxEpochExamples = int64_t{1} << 40;

// Returns what has been added to sums; 0 where that is not finite. A worker has
// no sums before its first step.
std::vector<double> AddedLosses(const std::vector<double>& known,
                                const std::vector<double>& now) {
  std::vector<double> added = now;
  for (size_t i = 0; i < now.size(); ++i) {
    added[i] -= i < known.size() ? known[i] : 0;
    if (!std::isfinite(added[i])) added[i] = 0;
  }
  return added;
}

}  // namespace

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
  if (examples < 0) return;
  const auto [it, is_new] = totals_.try_emplace(heartbeat.task().incarnation());
  Totals& known = it->second;
  CountRecorded(heartbeat, !is_new, known.recorded);
  std::vector<double> sums(heartbeat.output_loss_sum().begin(),
                           heartbeat.output_loss_sum().end());
  // A late message says nothing new.
  if (!is_new && examples <= known.examples) return;
  CountEpochs(heartbeat, !is_new, known.epochs);
  if (is_new && examples > 0) epochs_.Miss();
  // A sum stays what it is, but later epochs may be finite.
  if (!std::isfinite(heartbeat.loss_sum())) return;
  // What a worker has done before its first report was for another chief.
  if (!is_new) {
    loss_sum_ += heartbeat.loss_sum() - known.loss_sum;
    loss_examples_ += examples - known.examples;
    CountOutputs(known.output_loss_sums, sums);
  }
  known.loss_sum = heartbeat.loss_sum();
  known.output_loss_sums = std::move(sums);
  known.examples = examples;
}

void WorkerReports::CountRecorded(const wire::HeartbeatRequest& heartbeat,
                                  bool counts, RecordedTotals& known) {
  const RecordedTotals added =
      RecordedSince(known, RecordedOf(heartbeat.recorded()));
  AddRecorded(added, known);
  if (counts) AddRecorded(added, recorded_);
}

void WorkerReports::CountEpochs(const wire::HeartbeatRequest& heartbeat,
                                bool counts,
                                std::map<int64_t, EpochLosses::Sums>& known) {
  std::erase_if(known, [this](const auto& entry) {
    return !epochs_.IsOpen(entry.first);
  });
  for (const wire::EpochLoss& now : heartbeat.epoch_loss()) {
    if (!epochs_.IsOpen(now.epoch()) || now.examples() > kMaxEpochExamples ||
        !std::isfinite(now.loss_sum())) {
      continue;
    }
    EpochLosses::Sums& before = known[now.epoch()];
    if (now.examples() <= before.examples) continue;
    const std::vector<double> outputs(now.output_loss_sum().begin(),
                                      now.output_loss_sum().end());
    if (counts) {
      epochs_.Add(now.epoch(), {now.loss_sum() - before.loss_sum,
                                now.examples() - before.examples,
                                AddedLosses(before.output_loss_sums, outputs)});
    }
    before = {now.loss_sum(), now.examples(), outputs};
  }
}

void WorkerReports::CountOutputs(const std::vector<double>& known,
                                 const std::vector<double>& now) {
  if (now.size() > output_loss_sums_.size()) {
    output_loss_sums_.resize(now.size());
  }
  const std::vector<double> added = AddedLosses(known, now);
  for (size_t i = 0; i < now.size(); ++i) output_loss_sums_[i] += added[i];
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
