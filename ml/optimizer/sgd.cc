#include "ml/optimizer/sgd.h"

#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/sgd.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Sgd final : public RuleOptimizer<Sgd> {
 public:
  Sgd(LearningRate learning_rate, double momentum, bool nesterov)
      : RuleOptimizer(momentum > 0 ? Slots{.names = {"momentum"}} : Slots()),
        learning_rate_(std::move(learning_rate)),
        momentum_(static_cast<float>(momentum)),
        nesterov_(nesterov) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const auto learning_rate =
        static_cast<float>(learning_rate_.At(iterations));
    if (slot_names().empty()) {
      update(SgdRule{learning_rate});
    } else if (nesterov_) {
      update(NesterovRule{learning_rate, momentum_});
    } else {
      update(MomentumRule{learning_rate, momentum_});
    }
  }

 private:
  const LearningRate learning_rate_;
  const float momentum_;
  const bool nesterov_;
};

}  // namespace

void FillDefaults(job::Sgd& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .01);
  PARASOL_SET_DEFAULT(spec, momentum, 0);
  PARASOL_SET_DEFAULT(spec, nesterov, false);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeSgd(
    const job::Sgd& given, const job::LearningRateSchedule& schedule) {
  job::Sgd spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(CheckNotNegative("sgd.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckUpToOne("sgd.momentum", spec.momentum()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Sgd>(std::move(learning_rate), spec.momentum(),
                               spec.nesterov());
}

}  // namespace parasol
