#include "ml/optimizer/sgd.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
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
  Sgd(LearningRate learning_rate, const job::Sgd& spec)
      : RuleOptimizer(SlotsOf(spec)),
        learning_rate_(std::move(learning_rate)),
        momentum_(static_cast<float>(spec.momentum())),
        nesterov_(spec.nesterov()),
        delay_(spec.delay()) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const auto learning_rate =
        static_cast<float>(learning_rate_.At(iterations));
    if (slot_names().empty()) {
      update(SgdRule{learning_rate});
    } else if (slot_names().size() == 2) {
      const float share = learning_rate / static_cast<float>(delay_);
      if ((iterations + 1) % delay_ == 0) {
        update(DelayedNesterovRule{share, momentum_});
      } else {
        update(GatheringRule{share});
      }
    } else if (nesterov_) {
      update(NesterovRule{learning_rate, momentum_});
    } else {
      update(MomentumRule{learning_rate, momentum_});
    }
  }

 private:
  static Slots SlotsOf(const job::Sgd& spec) {
    if (spec.momentum() == 0) return {};
    if (spec.delay() > 1) return {.names = {"momentum", "gathered"}};
    return {.names = {"momentum"}};
  }

  const LearningRate learning_rate_;
  const float momentum_;
  const bool nesterov_;
  const int64_t delay_;
};

absl::Status CheckDelay(const job::Sgd& spec) {
  if (!spec.has_delay() || spec.delay() == 1) return absl::OkStatus();
  if (spec.delay() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("sgd.delay is ", spec.delay(), "; it must be at least 1"));
  }
  if (spec.nesterov() && spec.momentum() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sgd.delay is ", spec.delay(),
                   "; it needs a momentum, and nesterov: true"));
}

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
  RETURN_IF_ERROR(CheckDelay(spec));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Sgd>(std::move(learning_rate), spec);
}

}  // namespace parasol
