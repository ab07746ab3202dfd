#include "cluster/checkpoint/evaluation_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"

namespace parasol {

std::string ToJsonLine(const Evaluation& evaluation) {
  nlohmann::ordered_json line;
  line["global_step"] = evaluation.global_step;
  for (const auto& [name, value] : evaluation.metrics) line[name] = value;
  line["loss"] = evaluation.loss;
  line["examples"] = evaluation.examples;
  line["seconds"] = absl::ToDoubleSeconds(evaluation.took);
  line["checkpoint"] = evaluation.checkpoint;
  line["final"] = evaluation.final;
  // A path that is no UTF-8 must not throw.
  return line.dump(/*indent=*/-1, /*indent_char=*/' ', /*ensure_ascii=*/false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

std::string Describe(const Evaluation& evaluation) {
  return absl::StrFormat(
      "step %d: %s, %d examples in %.2f s", evaluation.global_step,
      Describe(evaluation.metrics, evaluation.loss), evaluation.examples,
      absl::ToDoubleSeconds(evaluation.took));
}

absl::Status AppendEvaluation(const std::string& checkpoint_directory,
                              const Evaluation& evaluation) {
  return AppendDurably(absl::StrCat(checkpoint_directory, "/evaluations.jsonl"),
                       ToJsonLine(evaluation) + "\n");
}

}  // namespace parasol
