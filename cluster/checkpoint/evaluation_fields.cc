#include "cluster/checkpoint/evaluation_fields.h"

#include "absl/time/time.h"

namespace parasol {

LogFields EvaluationFields(const Evaluation& evaluation) {
  LogFields fields;
  fields.AddCount("step", evaluation.global_step);
  for (const auto& [name, value] : evaluation.metrics) {
    fields.AddNumber(name, value);
  }
  fields.AddNumber("loss", evaluation.loss);
  fields.AddCount("examples", evaluation.examples);
  fields.AddNumber("seconds", absl::ToDoubleSeconds(evaluation.took));
  return fields;
}

}  // namespace parasol
