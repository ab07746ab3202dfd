#ifndef PARASOL_EVALUATOR_RUN_EVALUATOR_H_
#define PARASOL_EVALUATOR_RUN_EVALUATOR_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/trust.h"
#include "evaluator/job_evaluation.h"

namespace parasol {

// The flags of the `evaluator` binary.
struct RunEvaluatorOptions {
  std::string metrics_address;
  // Address of the health service. Empty: the task's own address, if it has
  // one.
  std::string health_address;
  absl::Duration chief_timeout = absl::Minutes(5);
  // The keys of this task; null without any.
  std::shared_ptr<const Trust> trust = nullptr;
  JobEvaluation::Options evaluation;
};

// Does everything that the binary does after its flags and TF_CONFIG are
// parsed; blocks until the task has ended. Checks the flags before it contacts
// the chief. Fails if a flag is wrong or the metrics address can't be listened
// on, and as EvaluatorTask does.
absl::Status RunEvaluator(const TaskConfig& config,
                          const RunEvaluatorOptions& options,
                          TerminationSignal& signal);

}  // namespace parasol

#endif  // PARASOL_EVALUATOR_RUN_EVALUATOR_H_
