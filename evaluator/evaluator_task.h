#ifndef PARASOL_EVALUATOR_EVALUATOR_TASK_H_
#define PARASOL_EVALUATOR_EVALUATOR_TASK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/trust/trust.h"
#include "evaluator/job_evaluation.h"
#include "proto/chief.pb.h"

namespace parasol {

struct EvaluatorTaskOptions {
  // The task's role "evaluator", its index and a fresh incarnation.
  wire::Task task;
  std::string chief_address;
  // Address of the health service. Empty: there is none.
  std::string listen_address;
  // Address of the metrics, reported to the chief so that people can find it.
  std::string metrics_address;
  absl::Duration chief_timeout = absl::Minutes(5);
  // The keys of this task; null: it has none, and neither has the chief.
  std::shared_ptr<const Trust> trust = nullptr;
  JobEvaluation::Options evaluation;
};

// The evaluator of a cluster, from its registration to the end of the job, on
// threads of its own. Both the binary's main() and in-process tests start it.
// An error of the evaluator ends the evaluator but not the job.
//
// Shutdown: Stop() or the job's end, then Wait(), then destruction.
class EvaluatorTask {
 public:
  // Starts the evaluator. `clock` and `metrics` must outlive it.
  //   InvalidArgument  the task can't listen on the address.
  static absl::StatusOr<std::unique_ptr<EvaluatorTask>> Start(
      const EvaluatorTaskOptions& options, Clock& clock,
      MetricsRegistry& metrics);
  virtual ~EvaluatorTask() = default;

  // Blocks until the evaluator has ended. Returns the result of
  // JobEvaluation::Run(), or an error of ChiefSession::Join().
  virtual absl::Status Wait() = 0;

  // Ends the evaluator before the next batch. May be called twice, from any
  // thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATOR_TASK_H_
