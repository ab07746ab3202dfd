#include "ml/optimizer/lion.h"

#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/decayed.h"
#include "ml/optimizer/rule/lion.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Lion final : public RuleOptimizer<Lion> {
 public:
  Lion(LearningRate learning_rate, const job::Lion& spec)
      : RuleOptimizer({.names = {"m"}, .other_rows = OtherRows::kAll}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const double rate = learning_rate_.At(iterations);
    update(DecayedRule<LionRule>{
        .kept = static_cast<float>(1 - rate * spec_.weight_decay()),
        .rule = {.learning_rate = static_cast<float>(rate),
                 .beta_1 = static_cast<float>(spec_.beta_1()),
                 .one_minus_beta_1 = static_cast<float>(1 - spec_.beta_1()),
                 .beta_2 = static_cast<float>(spec_.beta_2()),
                 .one_minus_beta_2 = static_cast<float>(1 - spec_.beta_2())}});
  }

 private:
  const LearningRate learning_rate_;
  const job::Lion spec_;
};

}  // namespace

void FillDefaults(job::Lion& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, beta_1, .9);
  PARASOL_SET_DEFAULT(spec, beta_2, .99);
  PARASOL_SET_DEFAULT(spec, weight_decay, 0.0);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLion(
    const job::Lion& given, const job::LearningRateSchedule& schedule) {
  job::Lion spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(CheckNotNegative("lion.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("lion.beta_1", spec.beta_1()));
  RETURN_IF_ERROR(CheckBelowOne("lion.beta_2", spec.beta_2()));
  RETURN_IF_ERROR(CheckNotNegative("lion.weight_decay", spec.weight_decay()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Lion>(std::move(learning_rate), spec);
}

}  // namespace parasol
