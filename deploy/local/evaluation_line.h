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
  // Metrics by their names in the job file, in its order. A value is NaN if the
  // line has null; so is the loss.
  std::vector<std::pair<std::string, double>> metrics = {};
  double loss = 0;

  bool operator==(const EvaluationLine&) const = default;
};

// Returns the last complete line of `jsonl` that is an evaluation; other lines
// are skipped. A line that the evaluator is still writing has no newline and is
// not complete.
std::optional<EvaluationLine> LastEvaluationLine(absl::string_view jsonl);

// Returns the value as text for people: "97.25 %" for accuracy, otherwise
// "0.9034".
std::string MetricText(absl::string_view metric, double value);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_
