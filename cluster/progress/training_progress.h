#ifndef PARASOL_CLUSTER_PROGRESS_TRAINING_PROGRESS_H_
#define PARASOL_CLUSTER_PROGRESS_TRAINING_PROGRESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/log_fields.h"
#include "cluster/progress/curve_points.h"
#include "cluster/progress/recorded_values.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// How far a training is. Totals grow while one process counts them.
struct TrainingSample {
  int64_t global_step = 0;
  int64_t end_step = 0;         // 0: not known
  int64_t steps_per_epoch = 0;  // 0: not known
  // The sum of the losses, and the number, of the examples so far.
  double loss_sum = 0;
  // Sum of the losses of each of the model's named outputs; empty before the
  // first report.
  std::vector<double> output_loss_sums = {};
  int64_t examples = 0;
  double learning_rate = 0;
  // Steps by which the clocks of workers differ, in bounded staleness.
  std::optional<int64_t> staleness = std::nullopt;
  // Step up to which the totals may lack steps.
  int64_t seen_from = 0;
  RecordedTotals recorded = {};
};

// Returns how far a training is by the status of its chief.
TrainingSample SampleOf(const wire::JobStatus& status);

// An interval of a training, as a line of training.jsonl has it.
struct ProgressRecord {
  int64_t global_step = 0;  // the step at its end
  // The step behind which the process has seen all of it; nullopt: not known.
  std::optional<int64_t> from_step = std::nullopt;
  // Number of epochs at its end, with a fraction; nullopt if it is not known.
  std::optional<double> epoch = std::nullopt;
  // Mean over the interval's examples; nullopt if there are none.
  std::optional<double> loss = std::nullopt;
  // Losses of the model's named outputs; empty if they are not known.
  std::vector<double> output_losses = {};
  double learning_rate = 0;
  double examples_per_second = 0;
  std::optional<int64_t> staleness = std::nullopt;
  // Means of the values that a program has recorded, by name.
  std::vector<std::pair<std::string, double>> values = {};
  // Time in which the run has been trained until its end.
  absl::Duration elapsed = {};
};

// Turns samples of a training into records, and into lines for the log about
// its epochs. There is a record at each of the CurvePoints that are seen, and
// wherever none has been for summary.every_seconds. Pure.
class TrainingProgress {
 public:
  // Number of records behind which the next one at a CurvePoint is no sooner
  // than kShortestInterval behind the last one: a file of short epochs stays
  // small.
  static constexpr int64_t kMaxDense = 10000;
  static constexpr absl::Duration kShortestInterval = absl::Seconds(1);
  // Shorter epochs share a line, but for the first ones of a run.
  static constexpr absl::Duration kShortestEpoch = absl::Milliseconds(200);
  static constexpr int64_t kOwnLines = 10;

  struct Observation {
    std::optional<ProgressRecord> record;
    std::optional<LogLine> epoch_line;
  };

  // `policy` has its defaults filled in. `elapsed` is the time in which other
  // processes have trained the run.
  explicit TrainingProgress(const job::SummaryPolicy& policy,
                            absl::Duration elapsed = {});

  // Takes a sample. The first one is what all others are compared with. An
  // `end` of the training makes a record whenever a step was done.
  Observation Observe(const TrainingSample& sample, absl::Time now,
                      bool is_end = false);

  // The parts of Observe(), for callers that know the sums at each epoch's end.
  // Takes the sample with which others are compared.
  void Begin(const TrainingSample& sample, absl::Time now);
  // Takes a sample at the end of an epoch; of one that has a line already, it
  // is nothing new. `is_end`: no other epoch comes with which it might share a
  // line.
  std::optional<LogLine> EpochLine(const TrainingSample& sample, absl::Time now,
                                   bool is_end);
  std::optional<ProgressRecord> Record(const TrainingSample& sample,
                                       absl::Time now, bool is_end);

  // Returns true if Observe() may tell something, or takes the first sample: at
  // the end of an interval or of an epoch, or at another point. For callers
  // that see each step.
  bool IsDue(int64_t global_step, int64_t steps_per_epoch,
             absl::Time now) const;

 private:
  struct Mark {
    absl::Time time;
    TrainingSample sample;
  };

  // Returns true if epoch `last`, the newest that has ended, has a line now.
  bool HasLine(int64_t last, absl::Time now) const;
  // Returns true if a step behind the last record has one of its own.
  bool HasRecord(int64_t global_step, int64_t steps_per_epoch,
                 absl::Time now) const;
  ProgressRecord RecordOf(const TrainingSample& sample, absl::Time now);

  const int64_t every_steps_;
  const absl::Duration every_;
  absl::Duration elapsed_;
  int64_t records_ = 0;
  std::optional<Mark> record_;  // the end of the last record
  std::optional<Mark> epoch_;   // the end of the last epoch
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_TRAINING_PROGRESS_H_
