#ifndef PARASOL_ML_OPTIMIZER_RULE_ADAM_H_
#define PARASOL_ML_OPTIMIZER_RULE_ADAM_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct AdamRule {
  static constexpr size_t kSlots = 2;
  float alpha;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;
  float epsilon;

  PARASOL_RULE float operator()(float g, float w, float& m, float& v) const {
    m = beta_1 * m + one_minus_beta_1 * g;
    v = beta_2 * v + one_minus_beta_2 * (g * g);
    return w - alpha * m / (std::sqrt(v) + epsilon);
  }
};

struct AmsgradRule {
  static constexpr size_t kSlots = 3;
  AdamRule adam;

  PARASOL_RULE float operator()(float g, float w, float& m, float& v,
                                float& vhat) const {
    m = adam.beta_1 * m + adam.one_minus_beta_1 * g;
    v = adam.beta_2 * v + adam.one_minus_beta_2 * (g * g);
    vhat = vhat < v ? v : vhat;
    return w - adam.alpha * m / (std::sqrt(vhat) + adam.epsilon);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_ADAM_H_
