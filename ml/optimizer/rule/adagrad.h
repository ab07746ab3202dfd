#ifndef PARASOL_ML_OPTIMIZER_RULE_ADAGRAD_H_
#define PARASOL_ML_OPTIMIZER_RULE_ADAGRAD_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct AdagradRule {
  static constexpr size_t kSlots = 1;
  float learning_rate;
  float epsilon;

  PARASOL_RULE float operator()(float g, float w, float& a) const {
    a = a + g * g;
    return w - learning_rate * g / (std::sqrt(a) + epsilon);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_ADAGRAD_H_
