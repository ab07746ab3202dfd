#include "ml/optimizer/adamax.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/adamax.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Adamax final : public RuleOptimizer<Adamax> {
 public:
  Adamax(LearningRate learning_rate, const job::Adamax& spec)
      : RuleOptimizer({.names = {"m", "v"}}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const double t = static_cast<double>(iterations) + 1;
    const double alpha =
        learning_rate_.At(iterations) / (1 - std::pow(spec_.beta_1(), t));
    update(
        AdamaxRule{.alpha = static_cast<float>(alpha),
                   .beta_1 = static_cast<float>(spec_.beta_1()),
                   .one_minus_beta_1 = static_cast<float>(1 - spec_.beta_1()),
                   .beta_2 = static_cast<float>(spec_.beta_2()),
                   .epsilon = static_cast<float>(spec_.epsilon())});
  }

 private:
  const LearningRate learning_rate_;
  const job::Adamax spec_;
};

}  // namespace

void FillDefaults(job::Adamax& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, beta_1, .9);
  PARASOL_SET_DEFAULT(spec, beta_2, .999);
  FillEpsilon(spec);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdamax(
    const job::Adamax& given, const job::LearningRateSchedule& schedule) {
  job::Adamax spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("adamax.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("adamax.beta_1", spec.beta_1()));
  RETURN_IF_ERROR(CheckBelowOne("adamax.beta_2", spec.beta_2()));
  RETURN_IF_ERROR(CheckPositive("adamax.epsilon", spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Adamax>(std::move(learning_rate), spec);
}

}  // namespace parasol
