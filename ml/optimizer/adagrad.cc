#include "ml/optimizer/adagrad.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule_optimizer.h"
#include "ml/optimizer/update_loop.h"

namespace parasol {
namespace {

struct AdagradRule {
  static constexpr size_t kSlots = 1;
  float learning_rate;
  float epsilon;

  PARASOL_RULE float operator()(float g, float w, float& a) const {
    a = a + g * g;
    return w - learning_rate * g / (std::sqrt(a) + epsilon);
  }
};

class Adagrad final : public RuleOptimizer<Adagrad> {
 public:
  Adagrad(LearningRate learning_rate, double initial_accumulator_value,
          double epsilon)
      : RuleOptimizer({.names = {"accumulator"},
                       .initial_values = {static_cast<float>(
                           initial_accumulator_value)}}),
        learning_rate_(std::move(learning_rate)),
        epsilon_(static_cast<float>(epsilon)) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    update(AdagradRule{static_cast<float>(learning_rate_.At(iterations)),
                       epsilon_});
  }

 private:
  const LearningRate learning_rate_;
  const float epsilon_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdagrad(
    const job::Adagrad& spec, const job::LearningRateSchedule& schedule) {
  const double initial_rate =
      spec.has_learning_rate() ? spec.learning_rate() : .001;
  const double initial_accumulator = spec.has_initial_accumulator_value()
                                         ? spec.initial_accumulator_value()
                                         : .1;
  const double epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7;
  RETURN_IF_ERROR(CheckNotNegative("adagrad.learning_rate", initial_rate));
  RETURN_IF_ERROR(CheckNotNegative("adagrad.initial_accumulator_value",
                                   initial_accumulator));
  RETURN_IF_ERROR(CheckNotNegative("adagrad.epsilon", epsilon));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(initial_rate, schedule));
  return std::make_unique<Adagrad>(std::move(learning_rate),
                                   initial_accumulator, epsilon);
}

}  // namespace parasol
