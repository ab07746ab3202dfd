#ifndef PARASOL_ML_OPTIMIZER_RULE_RMSPROP_H_
#define PARASOL_ML_OPTIMIZER_RULE_RMSPROP_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

// Factors that are the same for all elements of one update, and shared by all
// rules of RMSprop.
struct RmsPropFactors {
  float learning_rate;
  float rho;
  float one_minus_rho;
  float momentum;
  float epsilon;

  PARASOL_RULE float Mean(float mean, float sample) const {
    return rho * mean + one_minus_rho * sample;
  }
  PARASOL_RULE float Step(float g, float w, float variance) const {
    return w - learning_rate * g / (std::sqrt(variance) + epsilon);
  }
  PARASOL_RULE float Momentum(float g, float last, float variance) const {
    return momentum * last + learning_rate * g / std::sqrt(variance + epsilon);
  }
};

struct RmsPropRule {
  static constexpr size_t kSlots = 1;
  RmsPropFactors f;

  PARASOL_RULE float operator()(float g, float w, float& rms) const {
    rms = f.Mean(rms, g * g);
    return f.Step(g, w, rms);
  }
};

struct RmsPropCenteredRule {
  static constexpr size_t kSlots = 2;
  RmsPropFactors f;

  PARASOL_RULE float operator()(float g, float w, float& rms, float& mg) const {
    rms = f.Mean(rms, g * g);
    mg = f.Mean(mg, g);
    return f.Step(g, w, rms - mg * mg);
  }
};

struct RmsPropMomentumRule {
  static constexpr size_t kSlots = 2;
  RmsPropFactors f;

  PARASOL_RULE float operator()(float g, float w, float& rms,
                                float& momentum) const {
    rms = f.Mean(rms, g * g);
    momentum = f.Momentum(g, momentum, rms);
    return w - momentum;
  }
};

struct RmsPropCenteredMomentumRule {
  static constexpr size_t kSlots = 3;
  RmsPropFactors f;

  PARASOL_RULE float operator()(float g, float w, float& rms, float& momentum,
                                float& mg) const {
    rms = f.Mean(rms, g * g);
    mg = f.Mean(mg, g);
    momentum = f.Momentum(g, momentum, rms - mg * mg);
    return w - momentum;
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_RMSPROP_H_
