#include "evaluator/evaluation_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"

namespace parasol {

std::string ToJsonLine(const Evaluation& evaluation) {
  const nlohmann::ordered_json line = {
      {"global_step", evaluation.global_step},
      {"accuracy", evaluation.accuracy},
      {"loss", evaluation.loss},
      {"examples", evaluation.examples},
      {"seconds", absl::ToDoubleSeconds(evaluation.took)},
      {"checkpoint", evaluation.checkpoint},
      {"final", evaluation.final}};
  // A path that is no UTF-8 must not throw.
  return line.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string Describe(const Evaluation& evaluation) {
  return absl::StrFormat(
      "step %d: accuracy %.4f, loss %.4f, %d examples in %.2f s",
      evaluation.global_step, evaluation.accuracy, evaluation.loss,
      evaluation.examples, absl::ToDoubleSeconds(evaluation.took));
}

absl::Status AppendEvaluation(const std::string& checkpoint_directory,
                              const Evaluation& evaluation) {
  return AppendDurably(absl::StrCat(checkpoint_directory, "/evaluations.jsonl"),
                       ToJsonLine(evaluation) + "\n");
}

}  // namespace parasol
