#ifndef PARASOL_WORKER_TRAINING_REPORT_H_
#define PARASOL_WORKER_TRAINING_REPORT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/chief.pb.h"

namespace parasol {

// A worker's progress since its last report, sent to the chief with each
// heartbeat.
struct TrainingReport {
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;  // sum over `examples`
  // The same of the model's named outputs (BatchResult).
  std::vector<double> output_loss_sums = {};
  absl::Duration elapsed;
  // Share of the time, from the end of the pass before the report to the end of
  // its last pass, in which no pass ran. Unset if there is no pass.
  std::optional<double> wait_ratio;
};

// Adds the losses of a model's named outputs to their sums, which may be none
// yet.
void AddLosses(const std::vector<double>& losses, std::vector<double>& sums);

// Sums up a training loop's work from one report to the next. Thread-safe.
class TrainingReporter {
 public:
  explicit TrainingReporter(Clock& clock)
      : clock_(clock), start_(clock.Now()) {}

  void AddStep() ABSL_LOCKS_EXCLUDED(mu_);
  void AddExamples(int64_t examples, double loss_sum,
                   const std::vector<double>& output_loss_sums = {})
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds a forward and backward pass that ran from `start` to `end`.
  void AddPass(absl::Time start, absl::Time end) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the work since the last call.
  TrainingReport Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  Clock& clock_;
  absl::Mutex mu_;
  TrainingReport report_ ABSL_GUARDED_BY(mu_);
  absl::Time start_ ABSL_GUARDED_BY(mu_);
  // Passes since the last report: the sum of their durations, the end of the
  // pass before them (the start of the first pass if there is none), and the
  // end of the last one.
  absl::Duration computed_ ABSL_GUARDED_BY(mu_);
  absl::Time passes_start_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time passes_end_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

// Writes how training goes to a heartbeat: the totals of all reports, `total`,
// to which it adds `report`, and what `report` says of the time since the last
// one.
void ReportTraining(const TrainingReport& report, TrainingReport& total,
                    wire::HeartbeatRequest& request);

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_REPORT_H_
