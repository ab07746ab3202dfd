#ifndef PARASOL_ML_OPTIMIZER_RULE_DECAYED_H_
#define PARASOL_ML_OPTIMIZER_RULE_DECAYED_H_

#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

// `rule` behind decoupled weight decay: the value first shrinks by the factor
// `kept`, 1 - learning rate · weight decay (Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization", 2017).
template <typename Rule>
struct DecayedRule {
  static constexpr size_t kSlots = Rule::kSlots;
  float kept;
  Rule rule;

  template <typename... Slots>
  PARASOL_RULE float operator()(float g, float w, Slots&... slots) const {
    return rule(g, kept * w, slots...);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_DECAYED_H_
