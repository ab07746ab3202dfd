#ifndef PARASOL_WORKER_TRAINING_RECORD_H_
#define PARASOL_WORKER_TRAINING_RECORD_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/progress/curve_points.h"
#include "ml/model/model.h"
#include "proto/job.pb.h"
#include "worker/training_report.h"
#include "worker/worker_metrics.h"

namespace parasol {

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

  // Adds the time since `start` to `seconds`, a counter of the metrics.
  void Charge(Counter& seconds, absl::Time start);
  // Counts the time since `start` as computing: a pass or the staging of its
  // batch.
  void ChargePass(absl::Time start);

  // Adds the result of a pass, of the step or the batch of this number, from 0
  // over all epochs.
  //   OutOfRange  the loss is not finite and the job says to stop.
  absl::Status AddResult(const BatchResult& result, int64_t number);
  // Counts a step whose gradients are acknowledged.
  void AddStep();

 private:
  const job::WorkerSettings::NonFiniteLoss non_finite_loss_;
  const CurvePoints points_;
  Clock& clock_;
  WorkerMetrics& metrics_;
  TrainingReporter& reporter_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TRAINING_RECORD_H_
