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

// Records how a training loop spends its time and what its passes return, for
// the metrics and for the report to the chief. Must be used from one thread.
class TrainingRecord {
 public:
  // All references must outlive this object.
  TrainingRecord(job::WorkerSettings::NonFiniteLoss non_finite_loss,
                 Clock& clock, WorkerMetrics& metrics,
                 TrainingReporter& reporter)
      : non_finite_loss_(non_finite_loss),
        clock_(clock),
        metrics_(metrics),
        reporter_(reporter) {}

  // Adds the time since `start` to `seconds`, a counter of the metrics.
  void Charge(Counter& seconds, absl::Time start);
  // Counts the time since `start` as computing: a pass or the staging of its
  // batch.
  void ChargePass(absl::Time start);

  // Adds the result of a pass.
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status AddResult(const BatchResult& result);
  // Counts a step whose gradients are acknowledged.
  void AddStep();

 private:
  const job::WorkerSettings::NonFiniteLoss non_finite_loss_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_RECORD_H_
