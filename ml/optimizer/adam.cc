#include "ml/optimizer/adam.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/adam.h"
#include "ml/optimizer/rule/decayed.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

struct Hyperparameters {
  double beta_1;
  double beta_2;
  double epsilon;
  bool amsgrad;
  double weight_decay;
};

class Adam final : public RuleOptimizer<Adam> {
 public:
  Adam(LearningRate learning_rate, const Hyperparameters& hyper,
       OtherRows other_rows)
      : RuleOptimizer(
            {.names = SlotNames(hyper.amsgrad), .other_rows = other_rows}),
        learning_rate_(std::move(learning_rate)),
        hyper_(hyper) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const AdamRule rule = AdamRuleAt(iterations);
    if (hyper_.amsgrad) {
      WithDecay(iterations, AmsgradRule{rule}, update);
    } else {
      WithDecay(iterations, rule, update);
    }
  }

 private:
  static std::vector<std::string> SlotNames(bool amsgrad) {
    if (amsgrad) return {"m", "v", "vhat"};
    return {"m", "v"};
  }

  template <typename Rule, typename Update>
  void WithDecay(int64_t iterations, const Rule& rule,
                 const Update& update) const {
    if (hyper_.weight_decay == 0) return update(rule);
    const double lost = learning_rate_.At(iterations) * hyper_.weight_decay;
    update(DecayedRule<Rule>{static_cast<float>(1 - lost), rule});
  }

  AdamRule AdamRuleAt(int64_t iterations) const {
    const double t = static_cast<double>(iterations) + 1;
    const double alpha = learning_rate_.At(iterations) *
                         std::sqrt(1 - std::pow(hyper_.beta_2, t)) /
                         (1 - std::pow(hyper_.beta_1, t));
    return {.alpha = static_cast<float>(alpha),
            .beta_1 = static_cast<float>(hyper_.beta_1),
            .one_minus_beta_1 = static_cast<float>(1 - hyper_.beta_1),
            .beta_2 = static_cast<float>(hyper_.beta_2),
            .one_minus_beta_2 = static_cast<float>(1 - hyper_.beta_2),
            .epsilon = static_cast<float>(hyper_.epsilon)};
  }

  const LearningRate learning_rate_;
  const Hyperparameters hyper_;
};

double WeightDecayOf(const job::AdamW& spec) { return spec.weight_decay(); }

template <typename Spec>
double WeightDecayOf(const Spec& spec) {
  return 0;
}

// `Spec` is job::Adam, job::LazyAdam or job::AdamW.
template <typename Spec>
absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdamOf(
    absl::string_view kind, Spec spec,
    const job::LearningRateSchedule& schedule,
    Optimizer::OtherRows other_rows) {
  FillDefaults(spec);
  const auto field = [kind](absl::string_view name) {
    return absl::StrCat(kind, ".", name);
  };
  RETURN_IF_ERROR(
      CheckNotNegative(field("learning_rate"), spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne(field("beta_1"), spec.beta_1()));
  RETURN_IF_ERROR(CheckBelowOne(field("beta_2"), spec.beta_2()));
  RETURN_IF_ERROR(CheckPositive(field("epsilon"), spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  const Hyperparameters hyper = {.beta_1 = spec.beta_1(),
                                 .beta_2 = spec.beta_2(),
                                 .epsilon = spec.epsilon(),
                                 .amsgrad = spec.amsgrad(),
                                 .weight_decay = WeightDecayOf(spec)};
  RETURN_IF_ERROR(CheckNotNegative(field("weight_decay"), hyper.weight_decay));
  return std::make_unique<Adam>(std::move(learning_rate), hyper, other_rows);
}

template <typename Spec>
void FillAdamDefaults(Spec& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, beta_1, .9);
  PARASOL_SET_DEFAULT(spec, beta_2, .999);
  FillEpsilon(spec);
  PARASOL_SET_DEFAULT(spec, amsgrad, false);
}

}  // namespace

void FillDefaults(job::Adam& spec) { FillAdamDefaults(spec); }

void FillDefaults(job::LazyAdam& spec) { FillAdamDefaults(spec); }

void FillDefaults(job::AdamW& spec) {
  FillAdamDefaults(spec);
  PARASOL_SET_DEFAULT(spec, weight_decay, .004);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdam(
    const job::Adam& spec, const job::LearningRateSchedule& schedule) {
  return MakeAdamOf("adam", spec, schedule, Optimizer::OtherRows::kAll);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeLazyAdam(
    const job::LazyAdam& spec, const job::LearningRateSchedule& schedule) {
  return MakeAdamOf("lazy_adam", spec, schedule,
                    Optimizer::OtherRows::kUntouched);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdamW(
    const job::AdamW& spec, const job::LearningRateSchedule& schedule) {
  return MakeAdamOf("adamw", spec, schedule, Optimizer::OtherRows::kAll);
}

}  // namespace parasol
