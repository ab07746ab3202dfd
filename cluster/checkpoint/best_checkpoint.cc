#include "cluster/checkpoint/best_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "cluster/checkpoint/evaluation_decisions.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"
#include "storage/remote/remote_directory.h"

namespace parasol {
namespace {

constexpr size_t kMaxBytes = 4096;

// What the file says.
struct BestLine {
  int64_t global_step = 0;
  std::string metric;
  double value = 0;
  std::string run_id;       // empty in files of older versions
  int64_t chief_epoch = 0;  // 0 in files of older versions
};

std::string PathOfBest(const std::string& directory) {
  return JoinedPath(directory, kBestName);
}

std::string LineOf(const job::KeepBest& policy, const Evaluation& evaluation) {
  nlohmann::ordered_json line;
  line["checkpoint"] = CheckpointName(evaluation.global_step);
  line["global_step"] = evaluation.global_step;
  line["metric"] = policy.metric();
  line["value"] = ValueOf(evaluation, policy.metric()).value_or(0);
  if (!evaluation.run_id.empty()) line["run_id"] = evaluation.run_id;
  if (evaluation.chief_epoch != 0) line["chief_epoch"] = evaluation.chief_epoch;
  return line.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

// Returns the value of a key that has this type; `otherwise` if there is none.
template <typename T>
T ValueAt(const nlohmann::json& json, const char* key, T otherwise) {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->template get<T>() : otherwise;
  } else if constexpr (std::is_same_v<T, double>) {
    return found->is_number() ? found->template get<T>() : otherwise;
  } else {
    return found->is_number_integer() ? found->template get<T>() : otherwise;
  }
}

// Returns nullopt of what UpdateBest() does not write.
std::optional<BestLine> ParseBest(absl::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(
      text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const std::optional<int64_t> step =
      StepOfName(ValueAt(json, "checkpoint", std::string()));
  if (!step || ValueAt<int64_t>(json, "global_step", -1) != *step) {
    return std::nullopt;
  }
  return BestLine{
      .global_step = *step,
      .metric = ValueAt(json, "metric", std::string()),
      .value = ValueAt(json, "value", std::numeric_limits<double>::quiet_NaN()),
      .run_id = ValueAt(json, "run_id", std::string()),
      .chief_epoch = ValueAt<int64_t>(json, "chief_epoch", 0)};
}

absl::StatusOr<BestLine> ReadLine(const std::string& directory) {
  const std::string path = PathOfBest(directory);
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxBytes);
  if (absl::IsNotFound(text.status())) {
    const absl::StatusOr<std::vector<std::string>> names =
        ListDirectory(directory);
    if (!names.ok()) {
      return absl::NotFoundError(absl::StrCat(
          path, ": ", directory,
          " is no directory that can be read: ", names.status().message()));
    }
    if (std::count(names->begin(), names->end(), kManifestName) > 0) {
      return absl::NotFoundError(
          absl::StrCat(path, ": ", directory,
                       " is a checkpoint; name the directory that it is in"));
    }
    return absl::NotFoundError(absl::StrCat(
        path,
        ": no such file; it is there once a checkpoint was evaluated in a job "
        "with eval and checkpoint { keep_best {} }"));
  }
  RETURN_IF_ERROR(text.status());
  const std::optional<BestLine> line =
      text->size() > kMaxBytes ? std::nullopt : ParseBest(*text);
  if (line) return *line;
  return absl::DataLossError(absl::StrCat(
      path,
      ": is damaged; the next evaluation of the run writes it anew, or name a "
      "checkpoint of the directory"));
}

}  // namespace

absl::Status UpdateBest(const CheckpointStore& store, const job::Job& job,
                        absl::Span<const Evaluation> evaluations,
                        MayWrite may_write) {
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
  const std::string path = PathOfBest(store.directory());
  const absl::StatusOr<std::string> before = ReadFile(path, kMaxBytes);
  if (before.ok() && *before == line) return absl::OkStatus();
  return IsUri(path) ? WriteChecked(path, line, may_write)
                     : ReplaceFileDurably(path, line);
}

absl::StatusOr<BestCheckpoint> ReadBest(const std::string& directory) {
  ASSIGN_OR_RETURN(const BestLine line, ReadLine(directory));
  const CheckpointStore store(directory);
  const absl::StatusOr<durable::CheckpointManifest> manifest =
      store.ReadManifest(line.global_step);
  const std::string checkpoint = CheckpointName(line.global_step);
  if (absl::IsNotFound(manifest.status())) {
    return absl::NotFoundError(absl::StrCat(
        PathOfBest(directory), ": names ", checkpoint, ", which is not in ",
        directory, " any more; name another checkpoint"));
  }
  RETURN_IF_ERROR(manifest.status()) << PathOfBest(directory);
  const bool is_evaluated_one =
      (line.run_id.empty() || line.run_id == manifest->run_id()) &&
      (line.chief_epoch == 0 || line.chief_epoch == manifest->chief_epoch());
  if (!is_evaluated_one) {
    return absl::NotFoundError(absl::StrCat(
        PathOfBest(directory), ": names ", checkpoint, " of run ", line.run_id,
        ", chief_epoch ", line.chief_epoch,
        ", but the checkpoint there is of run ", manifest->run_id(),
        ", chief_epoch ", manifest->chief_epoch(),
        ", which is not evaluated yet; name another checkpoint"));
  }
  return BestCheckpoint{.path = store.PathOf(line.global_step),
                        .global_step = line.global_step,
                        .metric = line.metric,
                        .value = line.value};
}

}  // namespace parasol
