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

// Delayed Nesterov, between two moves of the momentum: the gradient is
// gathered, and moves the value by its share of a step.
struct GatheringRule {
  static constexpr size_t kSlots = 2;
  float share;  // learning rate / delay

  PARASOL_RULE float operator()(float g, float w, float&,
                                float& gathered) const {
    gathered += g;
    return w - share * g;
  }
};

// The last of `delay` updates: the mean of their gradients moves the momentum.
struct DelayedNesterovRule {
  static constexpr size_t kSlots = 2;
  float share;
  float momentum;

  PARASOL_RULE float operator()(float g, float w, float& a,
                                float& gathered) const {
    a = momentum * a - share * (gathered + g);
    gathered = 0;
    return w + (momentum * a - share * g);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_SGD_H_
