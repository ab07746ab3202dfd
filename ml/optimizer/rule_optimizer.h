#ifndef PARASOL_ML_OPTIMIZER_RULE_OPTIMIZER_H_
#define PARASOL_ML_OPTIMIZER_RULE_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/rule/update_rule.h"
#include "ml/optimizer/update_loop.h"

namespace parasol {

// Base of an optimizer that applies one rule of UpdateRule per update.
// `Derived` implements
//
//   template <typename Update>
//   void WithRule(int64_t iterations, const Update& update) const;
//
// which chooses the rule, computes its factors, and calls update(rule) once.
template <typename Derived>
class RuleOptimizer : public Optimizer {
 public:
  const std::vector<std::string>& slot_names() const final {
    return slots_.names;
  }

  float InitialSlotValue(size_t index) const final {
    return slots_.initial_values[index];
  }

  OtherRows other_rows() const final { return slots_.other_rows; }

  void Apply(int64_t iterations, const UpdateSpan& update) const final {
    derived().WithRule(iterations,
                       [&](const auto& rule) { ApplyRule(rule, update); });
  }

  UpdateRule RuleAt(int64_t iterations) const final {
    UpdateRule chosen;
    derived().WithRule(iterations, [&](const auto& rule) { chosen = rule; });
    return chosen;
  }

  void ApplyRows(int64_t iterations, const RowUpdate& update) const final {
    derived().WithRule(iterations,
                       [&](const auto& rule) { ApplyRule(rule, update); });
  }

 protected:
  struct Slots {
    std::vector<std::string> names = {};
    OtherRows other_rows = OtherRows::kUntouched;
    // Initial value of each slot, in the order of `names`; 0 for slots beyond
    // its end.
    std::vector<float> initial_values = {};
  };

  explicit RuleOptimizer(Slots slots) : slots_(std::move(slots)) {
    slots_.initial_values.resize(slots_.names.size());
  }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  Slots slots_;
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_RULE_OPTIMIZER_H_
