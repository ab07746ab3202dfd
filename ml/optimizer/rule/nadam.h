#ifndef PARASOL_ML_OPTIMIZER_RULE_NADAM_H_
#define PARASOL_ML_OPTIMIZER_RULE_NADAM_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct NadamRule {
  static constexpr size_t kSlots = 2;
  float learning_rate;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;
  float epsilon;
  float gradient_share;  // (1 - μ_t) / (1 - P_t)
  float momentum_share;  // μ_{t+1} / (1 - P_{t+1})
  float v_correction;    // 1 / (1 - β₂ᵗ)

  PARASOL_RULE float operator()(float g, float w, float& m, float& v) const {
    m = beta_1 * m + one_minus_beta_1 * g;
    v = beta_2 * v + one_minus_beta_2 * (g * g);
    const float ahead = gradient_share * g + momentum_share * m;
    return w - learning_rate * ahead / (std::sqrt(v * v_correction) + epsilon);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_NADAM_H_
