#ifndef PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_
#define PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// One line of <checkpoint directory>/evaluations.jsonl.
struct EvaluationLine {
  int64_t global_step = 0;
  // By their names in the job file, in its order. NaN where the line has null,
  // here and for the loss.
  std::vector<std::pair<std::string, double>> metrics = {};
  double loss = 0;

  bool operator==(const EvaluationLine&) const = default;
};

// The last complete line of `jsonl` that is an evaluation. A line that the
// evaluator is just writing has no newline yet; lines that are none are
// skipped.
std::optional<EvaluationLine> LastEvaluationLine(absl::string_view jsonl);

// For people: "97.25 %" of accuracy, otherwise "0.9034".
std::string MetricText(absl::string_view metric, double value);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_
