#ifndef PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_
#define PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_

#include <vector>

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

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_FEATURE_MEANINGLESS_LABEL_H_
