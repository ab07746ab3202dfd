#include "cluster/checkpoint/evaluation_log.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "base/uri/uri_path.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxFileBytes = size_t{64} << 20;

// Every other key is a metric.
constexpr const char* kKeys[] = {"global_step", "loss",       "examples",
                                 "seconds",     "checkpoint", "final",
                                 "run_id",      "chief_epoch"};

std::string PathIn(const std::string& checkpoint_directory) {
  return JoinedPath(checkpoint_directory, "evaluations.jsonl");
}

double NumberOf(const Json& json) {
  return json.is_number() ? json.get<double>()
                          : std::numeric_limits<double>::quiet_NaN();
}

// Returns nullopt if the line is no evaluation of the run.
std::optional<Evaluation> ParseLine(absl::string_view line,
                                    const std::string& run_id) {
  const absl::StatusOr<Json> parsed = ParseOrderedJson(line);
  if (!parsed.ok() || !parsed->is_object()) return std::nullopt;
  const Json& json = *parsed;
  if (json.value("run_id", Json()) != run_id) return std::nullopt;
  const Json step = json.value("global_step", Json());
  if (!step.is_number_integer()) return std::nullopt;
  Evaluation evaluation;
  evaluation.global_step = step.get<int64_t>();
  evaluation.run_id = run_id;
  evaluation.loss = NumberOf(json.value("loss", Json()));
  const Json examples = json.value("examples", Json());
  if (examples.is_number_integer())
    evaluation.examples = examples.get<int64_t>();
  const Json seconds = json.value("seconds", Json());
  if (seconds.is_number())
    evaluation.took = absl::Seconds(seconds.get<double>());
  const Json checkpoint = json.value("checkpoint", Json());
  if (checkpoint.is_string())
    evaluation.checkpoint = checkpoint.get<std::string>();
  evaluation.final = json.value("final", Json()) == true;
  const Json epoch = json.value("chief_epoch", Json());
  if (epoch.is_number_integer()) evaluation.chief_epoch = epoch.get<int64_t>();
  for (const auto& [key, value] : json.items()) {
    const bool is_metric =
        std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys);
    if (is_metric) evaluation.metrics.emplace_back(key, NumberOf(value));
  }
  return evaluation;
}

}  // namespace

std::optional<double> ValueOf(const Evaluation& evaluation,
                              const std::string& metric) {
  if (metric == "loss") return evaluation.loss;
  for (const auto& [name, value] : evaluation.metrics) {
    if (name == metric) return value;
  }
  return std::nullopt;
}

void DropLaterThan(int64_t newest_step, std::vector<Evaluation>& evaluations) {
  const auto later =
      std::partition_point(evaluations.begin(), evaluations.end(),
                           [newest_step](const Evaluation& evaluation) {
                             return evaluation.global_step <= newest_step;
                           });
  evaluations.erase(later, evaluations.end());
}

std::string ToJsonLine(const Evaluation& evaluation) {
  Json line;
  line["global_step"] = evaluation.global_step;
  for (const auto& [name, value] : evaluation.metrics) line[name] = value;
  line["loss"] = evaluation.loss;
  line["examples"] = evaluation.examples;
  line["seconds"] = absl::ToDoubleSeconds(evaluation.took);
  line["checkpoint"] = evaluation.checkpoint;
  line["final"] = evaluation.final;
  if (!evaluation.run_id.empty()) line["run_id"] = evaluation.run_id;
  if (evaluation.chief_epoch != 0) {
    line["chief_epoch"] = evaluation.chief_epoch;
  }
  // A path that is no UTF-8 must not throw.
  return line.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

std::string Describe(const Evaluation& evaluation) {
  return absl::StrFormat(
      "step %d: %s, %d examples in %.2f s", evaluation.global_step,
      Describe(evaluation.metrics, evaluation.loss), evaluation.examples,
      absl::ToDoubleSeconds(evaluation.took));
}

absl::Status AppendEvaluation(const std::string& checkpoint_directory,
                              const Evaluation& evaluation,
                              MayWrite may_write) {
  return AppendLineDurably(PathIn(checkpoint_directory), ToJsonLine(evaluation),
                           may_write);
}

absl::StatusOr<std::vector<Evaluation>> ReadEvaluations(
    const std::string& checkpoint_directory, const std::string& run_id,
    absl::FunctionRef<bool(const Evaluation&)> counts) {
  const std::string path = PathIn(checkpoint_directory);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxFileBytes);
  if (absl::IsNotFound(bytes.status())) return std::vector<Evaluation>();
  RETURN_IF_ERROR(bytes.status());
  if (bytes->size() > kMaxFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has more than ", kMaxFileBytes,
                     " bytes; remove its oldest lines"));
  }
  absl::string_view lines = *bytes;
  lines = lines.substr(0, lines.rfind('\n') + 1);
  std::map<int64_t, Evaluation> by_step;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const auto evaluation = ParseLine(line, run_id);
    if (!evaluation || !counts(*evaluation)) continue;
    by_step.insert_or_assign(evaluation->global_step, *evaluation);
  }
  std::vector<Evaluation> evaluations;
  for (auto& [step, evaluation] : by_step) {
    evaluations.push_back(std::move(evaluation));
  }
  return evaluations;
}

}  // namespace parasol
