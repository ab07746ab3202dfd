#ifndef PARASOL_WORKER_TRAINING_REPORT_H_
#define PARASOL_WORKER_TRAINING_REPORT_H_

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace parasol {

// A worker's progress since its last report, sent to the chief with each
// heartbeat.
struct TrainingReport {
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;  // sum over `examples`
  absl::Duration elapsed;
  // Share of the time, from the end of the pass before the report to the end of
  // its last pass, in which no pass ran. Unset if there is no pass.
  std::optional<double> wait_ratio;
};

// Sums up a training loop's work from one report to the next. Thread-safe.
class TrainingReporter {
 public:
  explicit TrainingReporter(Clock& clock)
      : clock_(clock), start_(clock.Now()) {}

  void AddStep() ABSL_LOCKS_EXCLUDED(mu_);
  void AddExamples(int64_t examples, double loss_sum) ABSL_LOCKS_EXCLUDED(mu_);
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

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_REPORT_H_
