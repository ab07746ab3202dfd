#ifndef PARASOL_ML_OPTIMIZER_RULE_ADADELTA_H_
#define PARASOL_ML_OPTIMIZER_RULE_ADADELTA_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct AdadeltaRule {
  static constexpr size_t kSlots = 2;
  float learning_rate;
  float rho;
  float one_minus_rho;
  float epsilon;

  PARASOL_RULE float operator()(float g, float w, float& accum_grad,
                                float& accum_var) const {
    accum_grad = rho * accum_grad + one_minus_rho * (g * g);
    const float step =
        std::sqrt(accum_var + epsilon) / std::sqrt(accum_grad + epsilon) * g;
    accum_var = rho * accum_var + one_minus_rho * (step * step);
    return w - learning_rate * step;
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_ADADELTA_H_
