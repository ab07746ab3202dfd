#ifndef PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_
#define PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_

#include <cstddef>
#include <vector>

#include "ml/input/feature/batch.h"
#include "ml/input/feature/model_inputs.h"

namespace parasol {

// Appends a label that a loss with this form accepts and that means nothing,
// for examples that have none.
inline void AppendMeaninglessLabel(const LabelForm& form,
                                   std::vector<float>& labels) {
  const size_t start = labels.size();
  labels.resize(start + form.width);
  // Probabilities of classes add up to 1; 0 is a class and a number.
  if (form.kind == LabelForm::Kind::kOneHot) labels[start] = 1;
}

// Appends labels that mean nothing for all that a model compares with labels,
// and the same value of each column that losses and metrics read. The example
// counts for each output.
inline void AppendMeaninglessLabels(const ModelInputs& inputs, Batch& batch) {
  if (inputs.targets.empty()) {
    AppendMeaninglessLabel(inputs.label, batch.labels);
  }
  for (size_t i = 0; i < inputs.targets.size(); ++i) {
    AppendMeaninglessLabel(inputs.targets[i].form, batch.targets[i].labels);
    batch.targets[i].weights.push_back(1);
  }
  for (size_t i = 0; i < inputs.columns.size(); ++i) {
    if (inputs.columns[i].kind == ExampleColumn::Kind::kKey) {
      batch.columns[i].keys.push_back(0);
    } else {
      batch.columns[i].numbers.push_back(1);
    }
  }
}

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_
