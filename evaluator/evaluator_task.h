#ifndef PARASOL_EVALUATOR_EVALUATOR_TASK_H_
#define PARASOL_EVALUATOR_EVALUATOR_TASK_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "evaluator/job_evaluation.h"
#include "proto/chief.pb.h"

namespace parasol {

struct EvaluatorTaskOptions {
  // Role "evaluator", its index and a fresh incarnation.
  wire::Task task;
  std::string chief_address;
  // Where the health service listens; empty: nowhere.
  std::string listen_address;
  // Told to the chief, for people to find.
  std::string metrics_address;
  absl::Duration chief_timeout = absl::Minutes(5);
  JobEvaluation::Options evaluation;
};

// The evaluator of a cluster, from its registration to the end of the job, on
// threads of its own. What the binary's main and in-process tests start. Its
// own errors end it, but not the job.
//
// Shutdown: Stop() or the job's end, then Wait(), then destroy.
class EvaluatorTask {
 public:
  // `clock` and `metrics` outlive it.
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<EvaluatorTask>> Start(
      const EvaluatorTaskOptions& options, Clock& clock,
      MetricsRegistry& metrics);
  virtual ~EvaluatorTask() = default;

  // Blocks until the evaluator has ended: with JobEvaluation::Run()'s result,
  // or an error of ChiefSession::Join().
  virtual absl::Status Wait() = 0;

  // Ends before the next batch. May be called twice, from any thread.
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_EVALUATOR_TASK_H_
