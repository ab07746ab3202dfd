#ifndef PARASOL_ML_OPTIMIZER_RULE_SGD_H_
#define PARASOL_ML_OPTIMIZER_RULE_SGD_H_

#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct SgdRule {
  static constexpr size_t kSlots = 0;
  float learning_rate;

  PARASOL_RULE float operator()(float g, float w) const {
    return w - learning_rate * g;
  }
};

struct MomentumRule {
  static constexpr size_t kSlots = 1;
  float learning_rate;
  float momentum;

  PARASOL_RULE float operator()(float g, float w, float& a) const {
    a = momentum * a - learning_rate * g;
    return w + a;
  }
};

struct NesterovRule {
  static constexpr size_t kSlots = 1;
  float learning_rate;
  float momentum;

  PARASOL_RULE float operator()(float g, float w, float& a) const {
    const float step = learning_rate * g;
    a = momentum * a - step;
    return w + (momentum * a - step);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_SGD_H_
