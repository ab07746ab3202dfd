#ifndef PARASOL_WORKER_TRAINING_REPORT_H_
#define PARASOL_WORKER_TRAINING_REPORT_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/inspection/trace_recorder.h"
#include "cluster/progress/recorded_values.h"
#include "proto/chief.pb.h"

namespace parasol {

class TrainingHooks;

// The losses of the examples of an epoch, or of its part between two
// CurvePoints.
struct EpochSums {
  double loss_sum = 0;
  int64_t examples = 0;
  std::vector<double> output_loss_sums = {};
  // Number of heartbeats with these sums, answered or not.
  int told = 0;
};

// An activity of a training loop, which has one at a time.
enum class StepPart { kInput, kPull, kCompute, kPush, kWait };
inline constexpr int kStepParts = 5;

// Times of a training loop.
struct StepTimes {
  absl::Duration& of(StepPart part) { return parts[static_cast<int>(part)]; }
  absl::Duration of(StepPart part) const {
    return parts[static_cast<int>(part)];
  }
  void Add(const StepTimes& other);
  // Returns the time that the worker itself needs, whoever it waits for: input,
  // passes, and standing still.
  absl::Duration Work() const;
  // Returns the share in which the loop waited for other tasks: for values,
  // acknowledgements and steps; nullopt if there is no time at all.
  std::optional<double> WaitRatio() const;

  std::array<absl::Duration, kStepParts> parts = {};
  // The part of waits in which the process did not run.
  absl::Duration stood_still;
};

// A worker's progress since its last report, sent to the chief with each
// heartbeat.
struct TrainingReport {
  int64_t steps = 0;
  int64_t batches = 0;  // passes, of all devices together
  int64_t examples = 0;
  double loss_sum = 0;  // sum over `examples`
  // Sums of the model's named outputs (BatchResult).
  std::vector<double> output_loss_sums = {};
  // Sums of each epoch, or its part, of which there are examples, from 0 on;
  // empty where they are not told apart.
  std::map<int64_t, EpochSums> epochs = {};
  // Values that a program has recorded.
  RecordedTotals recorded = {};
  // Time since the report before; in a total, since the last examples.
  absl::Duration elapsed;
  // Times of the thread that reports: a worker's first device.
  StepTimes times;
  // StepTimes::Work() of all devices together.
  absl::Duration work;
};

// Adds the losses of a model's named outputs to their sums, which may be none
// yet.
void AddLosses(const std::vector<double>& losses, std::vector<double>& sums);

// Sums up a training loop's work from one report to the next. Thread-safe.
class TrainingReporter {
 public:
  // `hooks`: told of the steps by whoever records them; null: none are. Shows
  // the parts and the steps in `trace`, which must outlive this object, on a
  // track of this name; null: nowhere. `first_step`: number of the first step
  // there.
  explicit TrainingReporter(Clock& clock, TrainingHooks* hooks = nullptr,
                            TraceRecorder* trace = nullptr,
                            std::string track = {}, int64_t first_step = 0);

  TrainingHooks* hooks() const { return hooks_; }

  void AddStep() ABSL_LOCKS_EXCLUDED(mu_);
  // Adds examples of an epoch, or its part, if that is known.
  void AddExamples(int64_t examples, double loss_sum,
                   const std::vector<double>& output_loss_sums = {},
                   std::optional<int64_t> epoch = std::nullopt)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds values that a program has recorded.
  void AddRecorded(const std::vector<std::pair<std::string, double>>& values)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds the batches that another reporter has summed up.
  void AddWorkOf(const TrainingReport& other) ABSL_LOCKS_EXCLUDED(mu_);
  // Begin and end a part of the loop's time; one part at a time.
  void Begin(StepPart part, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  void End(absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the part that has begun, begins another one, if `part` has a value,
  // and returns the one before.
  std::optional<StepPart> Switch(std::optional<StepPart> part)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the part that has begun, and when; nullopt if none has.
  std::optional<std::pair<StepPart, absl::Time>> Now() const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Adds time in which the process did not run during this part.
  void AddStandstill(absl::Duration time) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the work since the last call; of a part that has begun, what is
  // over.
  TrainingReport Take() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Shows what was done until now, if a trace is wanted.
  void Trace(const char* name, absl::Time begin, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndPart(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the time of the part that has begun, up to now.
  void Charge(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Clock& clock_;
  TrainingHooks* const hooks_;
  TraceRecorder* const trace_;
  const std::string track_;
  mutable absl::Mutex mu_;
  TrainingReport report_ ABSL_GUARDED_BY(mu_);
  // Number of steps that have ended, and when the last one did, or the first
  // part began.
  int64_t steps_ ABSL_GUARDED_BY(mu_);
  absl::Time step_since_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time part_began_ ABSL_GUARDED_BY(mu_);
  absl::Time start_ ABSL_GUARDED_BY(mu_);
  // The part that has begun, and since when its time is not in `report_`.
  std::optional<StepPart> part_ ABSL_GUARDED_BY(mu_);
  absl::Time part_since_ ABSL_GUARDED_BY(mu_);
};

// A part of a loop's time within another one, which goes on when this object is
// destroyed.
class InnerPart {
 public:
  // `reporter`: null, or must outlive this object.
  InnerPart(TrainingReporter* reporter, StepPart part) : reporter_(reporter) {
    if (reporter_ != nullptr) outer_ = reporter_->Switch(part);
  }
  ~InnerPart() {
    if (reporter_ != nullptr) reporter_->Switch(outer_);
  }
  InnerPart(const InnerPart&) = delete;
  InnerPart& operator=(const InnerPart&) = delete;

 private:
  TrainingReporter* const reporter_;
  std::optional<StepPart> outer_;
};

// Sets the gauge to StepTimes::WaitRatio(), if there is one.
void ShowWaitRatio(const StepTimes& times, Gauge& gauge);

// Heartbeats that repeat the sums of an epoch that no longer change: as many as
// go in 20 s to a chief that does not answer. The newest kMaxToldEpochs are
// told.
inline constexpr int kRepeatedSums = 100;
inline constexpr size_t kMaxToldEpochs = 256;

// Writes how training goes to a heartbeat: the totals of all reports, `total`,
// to which it adds `report`, and what `report` says of the time since the last
// one. Forgets the sums of epochs that enough heartbeats had.
void ReportTraining(const TrainingReport& report, TrainingReport& total,
                    wire::HeartbeatRequest& request);

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_REPORT_H_
