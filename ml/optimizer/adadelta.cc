#include "ml/optimizer/adadelta.h"

#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/adadelta.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Adadelta final : public RuleOptimizer<Adadelta> {
 public:
  Adadelta(LearningRate learning_rate, const job::Adadelta& spec)
      : RuleOptimizer({.names = {"accum_grad", "accum_var"}}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    update(AdadeltaRule{
        .learning_rate = static_cast<float>(learning_rate_.At(iterations)),
        .rho = static_cast<float>(spec_.rho()),
        .one_minus_rho = static_cast<float>(1 - spec_.rho()),
        .epsilon = static_cast<float>(spec_.epsilon())});
  }

 private:
  const LearningRate learning_rate_;
  const job::Adadelta spec_;
};

}  // namespace

void FillDefaults(job::Adadelta& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, rho, .95);
  FillEpsilon(spec);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdadelta(
    const job::Adadelta& given, const job::LearningRateSchedule& schedule) {
  job::Adadelta spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("adadelta.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("adadelta.rho", spec.rho()));
  RETURN_IF_ERROR(CheckPositive("adadelta.epsilon", spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Adadelta>(std::move(learning_rate), spec);
}

}  // namespace parasol
