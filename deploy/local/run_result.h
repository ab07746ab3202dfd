#ifndef PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_
#define PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cluster/checkpoint/best_checkpoint.h"
#include "deploy/local/evaluation_line.h"

namespace parasol {

// The result of a job on this machine.
struct RunResult {
  enum class Status { kSucceeded, kFailed, kInterrupted };
  Status status = Status::kSucceeded;
  // True if there was nothing to do: the job had been complete before.
  bool was_complete = false;
  // One line that names the task, for kFailed.
  std::string error;
  // The launcher's own exit code.
  int exit_code = 0;
  // The newest checkpoint and its step; empty and 0 if there is none.
  std::string checkpoint;
  int64_t global_step = 0;
  // Mean over the time of training, standstills included; 0 if the training is
  // too short to be observed.
  double examples_per_second = 0;
  absl::Duration elapsed = absl::ZeroDuration();
  // The newest evaluation, and the checkpoint with the best one by the job's
  // checkpoint.keep_best.
  std::optional<EvaluationLine> evaluation;
  std::optional<BestCheckpoint> best;
  // Address of each task's metrics: ("ps/0", "http://…/metrics").
  std::vector<std::pair<std::string, std::string>> metrics;
};

// Returns the result as one line of JSON for scripts; docs/operations.md
// describes it.
std::string ToJson(const RunResult& result);

// Returns the result as a few lines for people.
std::string Summary(const RunResult& result);

// Returns `number` with separators, like "12,345".
std::string WithThousands(int64_t number);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_
