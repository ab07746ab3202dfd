#ifndef PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_
#define PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "deploy/local/evaluation_line.h"

namespace parasol {

// What became of a job on this machine.
struct RunResult {
  enum class Status { kSucceeded, kFailed, kInterrupted };
  Status status = Status::kSucceeded;
  // kFailed: one line that names the task.
  std::string error;
  // The launcher's own.
  int exit_code = 0;
  // The newest checkpoint and its step; empty and 0 without one.
  std::string checkpoint;
  int64_t global_step = 0;
  // Mean over the time of training, standstills included; 0 if that was too
  // short to be seen.
  double examples_per_second = 0;
  absl::Duration elapsed = absl::ZeroDuration();
  std::optional<EvaluationLine> evaluation;
  // Where each task served its metrics: ("ps/0", "http://…/metrics").
  std::vector<std::pair<std::string, std::string>> metrics;
};

// For scripts: one line of JSON, documented in docs/operations.md.
std::string ToJson(const RunResult& result);

// For people: a few lines.
std::string Summary(const RunResult& result);

// "12,345".
std::string WithThousands(int64_t number);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_RUN_RESULT_H_
