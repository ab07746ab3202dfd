#ifndef PARASOL_WORKER_TRAINING_REPORT_H_
#define PARASOL_WORKER_TRAINING_REPORT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "proto/chief.pb.h"

namespace parasol {

// The losses of the examples of an epoch, or of its part between two
// CurvePoints.
struct EpochSums {
  double loss_sum = 0;
  int64_t examples = 0;
  std::vector<double> output_loss_sums = {};
  // Number of heartbeats with these sums, answered or not.
  int told = 0;
};

// A worker's progress since its last report, sent to the chief with each
// heartbeat.
struct TrainingReport {
  int64_t steps = 0;
  int64_t examples = 0;
  double loss_sum = 0;  // sum over `examples`
  // The same of the model's named outputs (BatchResult).
  std::vector<double> output_loss_sums = {};
  // The same of each epoch, or its part, of which there are examples, from 0
  // on; empty where they are not told apart.
  std::map<int64_t, EpochSums> epochs = {};
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
  // Adds examples of an epoch, or its part, if that is known.
  void AddExamples(int64_t examples, double loss_sum,
                   const std::vector<double>& output_loss_sums = {},
                   std::optional<int64_t> epoch = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds the examples that another reporter has summed up.
  void AddExamplesOf(const TrainingReport& other) ABSL_LOCKS_EXCLUDED(mu_);
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

// Heartbeats that repeat the sums of an epoch that no longer change: those of
// 20 s to a chief that does not answer. The newest kMaxToldEpochs are told.
inline constexpr int kRepeatedSums = 100;
inline constexpr size_t kMaxToldEpochs = 256;

// Writes how training goes to a heartbeat: the totals of all reports, `total`,
// to which it adds `report`, and what `report` says of the time since the last
// one. Forgets the sums of epochs that enough heartbeats had.
void ReportTraining(const TrainingReport& report, TrainingReport& total,
                    wire::HeartbeatRequest& request);

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_REPORT_H_
