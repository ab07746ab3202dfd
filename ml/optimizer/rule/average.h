#ifndef PARASOL_ML_OPTIMIZER_RULE_AVERAGE_H_
#define PARASOL_ML_OPTIMIZER_RULE_AVERAGE_H_

#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

// The moving average of a value, whatever its gradient was. The value stays.
struct AverageRule {
  static constexpr size_t kSlots = 1;
  float decay;
  float one_minus_decay;

  PARASOL_RULE float operator()(float, float w, float& average) const {
    average = decay * average + one_minus_decay * w;
    return w;
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_AVERAGE_H_
