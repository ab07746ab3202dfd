#ifndef PARASOL_ML_OPTIMIZER_RULE_LAMB_H_
#define PARASOL_ML_OPTIMIZER_RULE_LAMB_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

// LAMB in two parts, for the length of the step depends on norms of the whole
// variable: Remember() changes the slots of all elements, then Step() changes
// their values by the factor of Factor(). The direction follows from value and
// slots, so nothing is kept in between. The operator is both parts for an
// element of a variable that is excluded from layer adaptation.
struct LambRule {
  static constexpr size_t kSlots = 2;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;
  float unbias_m;  // 1 / (1 - β₁ᵗ)
  float unbias_v;  // 1 / (1 - β₂ᵗ)
  float epsilon;
  float weight_decay;
  double learning_rate;

  PARASOL_RULE void Remember(float g, float& m, float& v) const {
    m = beta_1 * m + one_minus_beta_1 * g;
    v = beta_2 * v + one_minus_beta_2 * (g * g);
  }

  PARASOL_RULE float Direction(float w, float m, float v) const {
    return unbias_m * m / (std::sqrt(unbias_v * v) + epsilon) +
           weight_decay * w;
  }

  // Returns the learning rate times the norm of the values over the norm of the
  // directions; the rate alone if one of these is not above 0.
  PARASOL_RULE float Factor(double squares_of_values,
                            double squares_of_directions) const {
    const bool adapts = squares_of_values > 0 && squares_of_directions > 0;
    const double ratio =
        adapts ? std::sqrt(squares_of_values) / std::sqrt(squares_of_directions)
               : 1;
    return static_cast<float>(learning_rate * ratio);
  }

  PARASOL_RULE float Step(float factor, float w, float m, float v) const {
    return w - factor * Direction(w, m, v);
  }

  PARASOL_RULE float operator()(float g, float w, float& m, float& v) const {
    Remember(g, m, v);
    return Step(static_cast<float>(learning_rate), w, m, v);
  }
};

// The two parts as rules.
struct LambRememberRule {
  static constexpr size_t kSlots = 2;
  LambRule lamb;

  PARASOL_RULE float operator()(float g, float w, float& m, float& v) const {
    lamb.Remember(g, m, v);
    return w;
  }
};

struct LambStepRule {
  static constexpr size_t kSlots = 2;
  LambRule lamb;
  float factor;

  PARASOL_RULE float operator()(float, float w, float& m, float& v) const {
    return lamb.Step(factor, w, m, v);
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_LAMB_H_
