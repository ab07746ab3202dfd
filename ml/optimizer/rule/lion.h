#ifndef PARASOL_ML_OPTIMIZER_RULE_LION_H_
#define PARASOL_ML_OPTIMIZER_RULE_LION_H_

#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct LionRule {
  static constexpr size_t kSlots = 1;
  float learning_rate;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;

  PARASOL_RULE float operator()(float g, float w, float& m) const {
    const float ahead = beta_1 * m + one_minus_beta_1 * g;
    m = beta_2 * m + one_minus_beta_2 * g;
    const float up = ahead > 0 ? learning_rate : 0;
    const float down = ahead < 0 ? learning_rate : 0;
    // NaN must not pass for a direction: it compares with nothing.
    return w - (up - down) + (ahead - ahead);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_LION_H_
