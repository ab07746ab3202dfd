#ifndef PARASOL_ML_OPTIMIZER_RULE_ADAMAX_H_
#define PARASOL_ML_OPTIMIZER_RULE_ADAMAX_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct AdamaxRule {
  static constexpr size_t kSlots = 2;
  float alpha;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float epsilon;

  PARASOL_RULE float operator()(float g, float w, float& m, float& v) const {
    m = beta_1 * m + one_minus_beta_1 * g;
    const float decayed = beta_2 * v;
    const float size = std::abs(g);
    v = decayed < size ? size : decayed;
    return w - alpha * m / (v + epsilon);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_ADAMAX_H_
