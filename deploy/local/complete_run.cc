#include "deploy/local/complete_run.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/final_checkpoint.h"
#include "cluster/checkpoint/resume.h"
#include "deploy/local/file_tail.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

constexpr int64_t kLinesTailBytes = 64 << 10;

bool IsEvaluated(const std::string& checkpoint_dir,
                 const durable::CheckpointManifest& last) {
  const absl::StatusOr<std::vector<Evaluation>> evaluations =
      ReadEvaluations(checkpoint_dir, last.run_id());
  return evaluations.ok() &&
         std::any_of(evaluations->begin(), evaluations->end(),
                     [&last](const Evaluation& evaluation) {
                       return evaluation.global_step == last.global_step();
                     });
}

}  // namespace

void AddCheckpoint(const std::string& checkpoint_dir, RunResult& result) {
  const auto newest = NewestManifest(checkpoint_dir);
  if (!newest) return;
  result.global_step = newest->global_step();
  result.checkpoint =
      CheckpointStore(checkpoint_dir).PathOf(newest->global_step());
}

std::optional<RunResult> FindCompleteRun(const LoadedJob& loaded,
                                         const std::string& checkpoint_dir,
                                         bool wants_evaluation) {
  const auto last = NewestManifest(checkpoint_dir);
  if (!last || !IsComplete(*last, loaded.job)) return std::nullopt;
  const CheckpointStore store(checkpoint_dir);
  const absl::StatusOr<CheckpointContents> contents =
      ContentsOf(loaded.graph.variables, loaded.job);
  if (!contents.ok() || !CheckResumable(*last, loaded.job, *contents).ok() ||
      !store.CheckComplete(last->global_step()).ok()) {
    return std::nullopt;
  }
  const bool is_evaluated = !wants_evaluation || !loaded.job.has_eval() ||
                            IsEvaluated(checkpoint_dir, *last);
  if (!is_evaluated) return std::nullopt;
  RunResult result;
  result.was_complete = true;
  AddCheckpoint(checkpoint_dir, result);
  result.evaluation = LastEvaluationLine(FileTail(
      JoinedPath(checkpoint_dir, "evaluations.jsonl"), kLinesTailBytes));
  return result;
}

}  // namespace parasol
