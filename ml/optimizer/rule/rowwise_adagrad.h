#ifndef PARASOL_ML_OPTIMIZER_RULE_ROWWISE_ADAGRAD_H_
#define PARASOL_ML_OPTIMIZER_RULE_ROWWISE_ADAGRAD_H_

#include <cmath>
#include <cstddef>

#include "ml/optimizer/rule/rule.h"
#include "ml/optimizer/rule/sgd.h"

namespace parasol {

// Adagrad whose slot has one element for each row. A rule of rows: an update
// has whole rows, and the loops give it the sum of squares of each row's
// gradient, in one order on every device: lane l of kLanes adds up the squares
// of the elements l, l + kLanes, …; then the upper half of the lanes is added
// to the lower one, until one is left.
//
// The formula is FBGEMM's, as of EXACT_ROWWISE_ADAGRAD without weight decay
// (rowwise_adagrad() in fbgemm_gpu/codegen/genscript/optimizers.py):
//
//   multiplier = learning_rate / (sqrtf(momentum1 += Σg² / D) + eps)
//   weight -= multiplier · g
struct RowwiseAdagradRule {
  static constexpr size_t kSlots = 1;
  static constexpr size_t kLanes = 16;
  float learning_rate;
  float epsilon;

  // Takes a row's gradient of `width` elements into its accumulator. Returns
  // the step that all values of the row make.
  PARASOL_RULE SgdRule StepOf(float sum_of_squares, size_t width,
                              float& a) const {
    a = a + sum_of_squares / static_cast<float>(width);
    return {learning_rate / (std::sqrt(a) + epsilon)};
  }

  // Updates a row of one element.
  PARASOL_RULE float operator()(float g, float w, float& a) const {
    return StepOf(g * g, 1, a)(g, w);
  }
};

// True of rules of rows.
template <typename Rule>
inline constexpr bool kIsRuleOfRows = false;
template <>
inline constexpr bool kIsRuleOfRows<RowwiseAdagradRule> = true;

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_ROWWISE_ADAGRAD_H_
