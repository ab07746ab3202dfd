#ifndef PARASOL_ML_OPTIMIZER_RULE_FTRL_H_
#define PARASOL_ML_OPTIMIZER_RULE_FTRL_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"

namespace parasol {

struct FtrlFactors {
  float inverse_learning_rate;
  float l1;
  float twice_l2;  // includes beta's share
  float twice_shrinkage;
  float minus_power;
};

// Two ways to compute n^-p.
struct FtrlSquareRoot {
  PARASOL_RULE static float Of(const FtrlFactors&, float n) {
    return std::sqrt(n);
  }
};
struct FtrlAnyPower {
  PARASOL_RULE static float Of(const FtrlFactors& f, float n) {
    return std::pow(n, f.minus_power);
  }
};

template <typename Power>
struct FtrlRule {
  static constexpr size_t kSlots = 2;
  FtrlFactors f;

  PARASOL_RULE float operator()(float g, float w, float& n, float& z) const {
    const float before = Power::Of(f, n);
    n = n + g * g;
    const float after = Power::Of(f, n);
    z = z + ((g + f.twice_shrinkage * w) -
             (after - before) * f.inverse_learning_rate * w);
    const float towards_zero = (z < 0 ? -f.l1 : f.l1) - z;
    const float leader =
        towards_zero / (after * f.inverse_learning_rate + f.twice_l2);
    return std::abs(z) > f.l1 ? leader : 0.0f;
  }
};

// The rule at a rate of 0, or one whose inverse is no float, where a schedule
// may end: the formula divides by it, and in TensorFlow the values become NaN,
// then 0.
struct FtrlStandingStill {
  static constexpr size_t kSlots = 2;
  PARASOL_RULE float operator()(float, float w, float&, float&) const {
    return w;
  }
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_FTRL_H_
