#include "ml/optimizer/nadam.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/nadam.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

// μ_t and P_t of any t at once: an optimizer keeps no state of its own, and the
// parts of a variable may have had different numbers of updates.
class MomentumSchedule {
 public:
  MomentumSchedule(double beta_1, double decay)
      : beta_1_(beta_1), decay_(decay) {
    // Ends when .96^(decay·t) is gone from μ_t, or P_t from 1 - P_t: the slower
    // the first, the faster the second. After 4,200 products at most.
    double t = 1;
    while (products_.back() > kGone && Falling(t) > kGone) {
      products_.push_back(products_.back() * Momentum(t++));
    }
  }

  double Momentum(double t) const { return beta_1_ * (1 - .5 * Falling(t)); }

  double Product(double t) const {
    const double last = static_cast<double>(products_.size() - 1);
    if (t <= last) return products_[static_cast<size_t>(t)];
    return products_.back() * std::pow(beta_1_, t - last);
  }

 private:
  static constexpr double kGone = 0x1p-60;

  double Falling(double t) const { return std::pow(.96, decay_ * t); }

  double beta_1_;
  double decay_;
  std::vector<double> products_ = {1};
};

class Nadam final : public RuleOptimizer<Nadam> {
 public:
  Nadam(LearningRate learning_rate, const job::Nadam& spec)
      : RuleOptimizer({.names = {"m", "v"}, .other_rows = OtherRows::kSlots}),
        learning_rate_(std::move(learning_rate)),
        spec_(spec),
        momentum_(spec.beta_1(), spec.schedule_decay()) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    const double t = static_cast<double>(iterations) + 1;
    update(NadamRule{
        .learning_rate = static_cast<float>(learning_rate_.At(iterations)),
        .beta_1 = static_cast<float>(spec_.beta_1()),
        .one_minus_beta_1 = static_cast<float>(1 - spec_.beta_1()),
        .beta_2 = static_cast<float>(spec_.beta_2()),
        .one_minus_beta_2 = static_cast<float>(1 - spec_.beta_2()),
        .epsilon = static_cast<float>(spec_.epsilon()),
        .gradient_share = static_cast<float>((1 - momentum_.Momentum(t)) /
                                             (1 - momentum_.Product(t))),
        .momentum_share = static_cast<float>(momentum_.Momentum(t + 1) /
                                             (1 - momentum_.Product(t + 1))),
        .v_correction =
            static_cast<float>(1 / (1 - std::pow(spec_.beta_2(), t)))});
  }

 private:
  const LearningRate learning_rate_;
  const job::Nadam spec_;
  const MomentumSchedule momentum_;
};

}  // namespace

void FillDefaults(job::Nadam& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, beta_1, .9);
  PARASOL_SET_DEFAULT(spec, beta_2, .999);
  FillEpsilon(spec);
  PARASOL_SET_DEFAULT(spec, schedule_decay, .004);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeNadam(
    const job::Nadam& given, const job::LearningRateSchedule& schedule) {
  job::Nadam spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("nadam.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckBelowOne("nadam.beta_1", spec.beta_1()));
  RETURN_IF_ERROR(CheckBelowOne("nadam.beta_2", spec.beta_2()));
  RETURN_IF_ERROR(CheckPositive("nadam.epsilon", spec.epsilon()));
  RETURN_IF_ERROR(
      CheckNotNegative("nadam.schedule_decay", spec.schedule_decay()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Nadam>(std::move(learning_rate), spec);
}

}  // namespace parasol
