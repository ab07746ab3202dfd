#include "ml/optimizer/rmsprop.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/rmsprop.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

std::vector<std::string> SlotNames(const job::RmsProp& spec) {
  std::vector<std::string> names = {"rms"};
  if (spec.momentum() > 0) names.push_back("momentum");
  if (spec.centered()) names.push_back("mg");
  return names;
}

class RmsProp final : public RuleOptimizer<RmsProp> {
 public:
  RmsProp(LearningRate learning_rate, const job::RmsProp& spec)
      : RuleOptimizer({.names = SlotNames(spec),
                       .other_rows = spec.momentum() > 0 ? OtherRows::kUntouched
                                                         : OtherRows::kSlots}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const RmsPropFactors factors = {
        .learning_rate = static_cast<float>(learning_rate_.At(iterations)),
        .rho = static_cast<float>(spec_.rho()),
        .one_minus_rho = static_cast<float>(1 - spec_.rho()),
        .momentum = static_cast<float>(spec_.momentum()),
        .epsilon = static_cast<float>(spec_.epsilon())};
    if (spec_.momentum() > 0 && spec_.centered()) {
      update(RmsPropCenteredMomentumRule{factors});
    } else if (spec_.momentum() > 0) {
      update(RmsPropMomentumRule{factors});
    } else if (spec_.centered()) {
      update(RmsPropCenteredRule{factors});
    } else {
      update(RmsPropRule{factors});
    }
  }

 private:
  const LearningRate learning_rate_;
  const job::RmsProp spec_;
};

}  // namespace

void FillDefaults(job::RmsProp& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, rho, .9);
  PARASOL_SET_DEFAULT(spec, momentum, 0);
  FillEpsilon(spec);
  PARASOL_SET_DEFAULT(spec, centered, false);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeRmsProp(
    const job::RmsProp& given, const job::LearningRateSchedule& schedule) {
  job::RmsProp spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("rmsprop.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("rmsprop.rho", spec.rho()));
  RETURN_IF_ERROR(CheckUpToOne("rmsprop.momentum", spec.momentum()));
  RETURN_IF_ERROR(CheckPositive("rmsprop.epsilon", spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<RmsProp>(std::move(learning_rate), spec);
}

}  // namespace parasol
