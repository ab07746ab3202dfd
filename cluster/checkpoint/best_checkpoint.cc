#include "cluster/checkpoint/best_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

constexpr size_t kMaxBytes = 4096;

std::string LineOf(const job::KeepBest& policy, const Evaluation& evaluation) {
  nlohmann::ordered_json line;
  line["checkpoint"] = CheckpointName(evaluation.global_step);
  line["global_step"] = evaluation.global_step;
  line["metric"] = policy.metric();
  line["value"] = ValueOf(evaluation, policy.metric()).value_or(0);
  return line.dump() + "\n";
}

}  // namespace

absl::Status UpdateBest(const CheckpointStore& store, const job::Job& job,
                        absl::Span<const Evaluation> evaluations) {
  if (!job.checkpoint().has_keep_best()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int64_t> there, store.ListSteps());
  const std::vector<int64_t> best_first =
      DecideByEvaluations(job, evaluations).best_first;
  const auto best = std::find_if(
      best_first.begin(), best_first.end(), [&there](int64_t step) {
        return std::binary_search(there.begin(), there.end(), step);
      });
  if (best == best_first.end()) return absl::OkStatus();
  const auto evaluation = std::find_if(
      evaluations.begin(), evaluations.end(),
      [best](const Evaluation& one) { return one.global_step == *best; });
  const std::string line = LineOf(job.checkpoint().keep_best(), *evaluation);
  const std::string path = absl::StrCat(store.directory(), "/BEST");
  const absl::StatusOr<std::string> before = ReadFile(path, kMaxBytes);
  if (before.ok() && *before == line) return absl::OkStatus();
  return ReplaceFileDurably(path, line);
}

}  // namespace parasol
