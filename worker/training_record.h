#ifndef PARASOL_WORKER_TRAINING_RECORD_H_
#define PARASOL_WORKER_TRAINING_RECORD_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

// Where a training loop's time goes and what its passes give, for the metrics
// and for the report to the chief. For one thread.
class TrainingRecord {
 public:
  // All must outlive it.
  TrainingRecord(job::WorkerSettings::NonFiniteLoss non_finite_loss,
                 Clock& clock, WorkerMetrics& metrics,
                 TrainingReporter& reporter)
      : non_finite_loss_(non_finite_loss),
        clock_(clock),
        metrics_(metrics),
        reporter_(reporter) {}

  // Adds the time since `start` to `seconds`, one of the metrics'.
  void Charge(Counter& seconds, absl::Time start);
  // The time since `start` was a pass's, or its batch's staging.
  void ChargePass(absl::Time start);

  // What a pass has given.
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status AddResult(const BatchResult& result);
  // Its gradients are acknowledged.
  void AddStep();

 private:
  const job::WorkerSettings::NonFiniteLoss non_finite_loss_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_RECORD_H_
