#include "ml/optimizer/ftrl.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/ftrl.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Ftrl final : public RuleOptimizer<Ftrl> {
 public:
  Ftrl(LearningRate learning_rate, const job::Ftrl& spec)
      : RuleOptimizer({.names = {"accumulator", "linear"},
                       .initial_values = {static_cast<float>(
                           spec.initial_accumulator_value())}}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const double learning_rate = learning_rate_.At(iterations);
    const FtrlFactors factors = {
        .inverse_learning_rate = static_cast<float>(1 / learning_rate),
        .l1 = static_cast<float>(spec_.l1_regularization_strength()),
        .twice_l2 = static_cast<float>(2 * spec_.l2_regularization_strength() +
                                       spec_.beta() / learning_rate),
        .twice_shrinkage = static_cast<float>(
            2 * spec_.l2_shrinkage_regularization_strength()),
        .minus_power = static_cast<float>(-spec_.learning_rate_power())};
    if (!std::isfinite(factors.inverse_learning_rate)) {
      update(FtrlStandingStill());
    } else if (spec_.learning_rate_power() == -.5) {
      update(FtrlRule<FtrlSquareRoot>{factors});
    } else {
      update(FtrlRule<FtrlAnyPower>{factors});
    }
  }

 private:
  const LearningRate learning_rate_;
  const job::Ftrl spec_;
};

absl::Status Check(const job::Ftrl& spec) {
  RETURN_IF_ERROR(CheckPositive("ftrl.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(
      CheckNotPositive("ftrl.learning_rate_power", spec.learning_rate_power()));
  RETURN_IF_ERROR(CheckNotNegative("ftrl.initial_accumulator_value",
                                   spec.initial_accumulator_value()));
  RETURN_IF_ERROR(CheckNotNegative("ftrl.l1_regularization_strength",
                                   spec.l1_regularization_strength()));
  RETURN_IF_ERROR(CheckNotNegative("ftrl.l2_regularization_strength",
                                   spec.l2_regularization_strength()));
  RETURN_IF_ERROR(
      CheckNotNegative("ftrl.l2_shrinkage_regularization_strength",
                       spec.l2_shrinkage_regularization_strength()));
  return CheckNotNegative("ftrl.beta", spec.beta());
}

}  // namespace

void FillDefaults(job::Ftrl& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, learning_rate_power, -.5);
  PARASOL_SET_DEFAULT(spec, initial_accumulator_value, .1);
  PARASOL_SET_DEFAULT(spec, l1_regularization_strength, 0);
  PARASOL_SET_DEFAULT(spec, l2_regularization_strength, 0);
  PARASOL_SET_DEFAULT(spec, l2_shrinkage_regularization_strength, 0);
  PARASOL_SET_DEFAULT(spec, beta, 0);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeFtrl(
    const job::Ftrl& given, const job::LearningRateSchedule& schedule) {
  job::Ftrl spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(Check(spec));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Ftrl>(std::move(learning_rate), spec);
}

}  // namespace parasol
