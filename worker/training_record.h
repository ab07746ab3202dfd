#ifndef PARASOL_WORKER_TRAINING_RECORD_H_
#define PARASOL_WORKER_TRAINING_RECORD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/progress/curve_points.h"
#include "ml/model/model.h"
#include "parameters/training_parameters.h"
#include "proto/job.pb.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// Longest wait of a training loop without a look at the time: one that takes
// longer shows that the process did not run. Processes that are throttled stand
// still for some tens of milliseconds at a time.
inline constexpr absl::Duration kWaitSlice = absl::Milliseconds(20);

// Records how a training loop spends its time and what its passes return, for
// the metrics and for the report to the chief. Must be used from one thread.
class TrainingRecord {
 public:
  // All references must outlive this object. Losses are told apart by epochs,
  // or their parts, if the points are known.
  TrainingRecord(job::WorkerSettings::NonFiniteLoss non_finite_loss,
                 const CurvePoints& points, Clock& clock,
                 WorkerMetrics& metrics, TrainingReporter& reporter)
      : non_finite_loss_(non_finite_loss),
        points_(points),
        clock_(clock),
        metrics_(metrics),
        reporter_(reporter) {}

  // Counts the time of its life as a part's; one lives at a time. Staging a
  // batch is computing.
  class Timed {
   public:
    Timed(TrainingRecord& record, StepPart part);
    ~Timed();
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    TrainingRecord& record_;
    const StepPart part_;
    const absl::Time start_;
  };

  // Waits for `pending` for up to `limit`, which is short, and returns true if
  // it is there. A wait that takes longer was none: the process stood still.
  bool WaitFor(TrainingParameters::Pending& pending, absl::Duration limit);

  // Adds the result of a pass, of the step or the batch of this number, from 0
  // over all epochs.
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status AddResult(const BatchResult& result, int64_t number);
  // Checks the loss of a part of a pass. Fails as AddResult() does.
  absl::Status CheckLoss(const BatchResult& result) const;
  // Counts a step whose gradients are acknowledged.
  void AddStep();

 private:
  Counter& SecondsOf(StepPart part);

  const job::WorkerSettings::NonFiniteLoss non_finite_loss_;
  const CurvePoints points_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_RECORD_H_
