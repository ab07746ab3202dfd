#ifndef PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_
#define PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace parasol {

// One line of <checkpoint directory>/evaluations.jsonl.
struct EvaluationLine {
  int64_t global_step = 0;
  double accuracy = 0;
  double loss = 0;  // NaN where the line has null

  bool operator==(const EvaluationLine&) const = default;
};

// The last complete line of `jsonl` that is an evaluation. A line that the
// evaluator is just writing has no newline yet; lines that are none are
// skipped.
std::optional<EvaluationLine> LastEvaluationLine(absl::string_view jsonl);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_EVALUATION_LINE_H_
