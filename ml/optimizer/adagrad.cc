#include "ml/optimizer/adagrad.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/update_loop.h"

namespace parasol {
namespace {

PARASOL_MULTIVERSION
void ApplyAdagrad(size_t count, const std::byte* gradient, const float* value,
                  float* new_value, float* accumulator, float learning_rate,
                  float epsilon) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float g = LoadFloat(gradient, i);
    const float a = accumulator[i] + g * g;
    accumulator[i] = a;
    new_value[i] = value[i] - learning_rate * g / (std::sqrt(a) + epsilon);
  }
}

class Adagrad final : public Optimizer {
 public:
  Adagrad(LearningRate learning_rate, double initial_accumulator_value,
          double epsilon)
      : learning_rate_(std::move(learning_rate)),
        initial_accumulator_value_(
            static_cast<float>(initial_accumulator_value)),
        epsilon_(static_cast<float>(epsilon)) {}

  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }

  float InitialSlotValue(size_t) const override {
    return initial_accumulator_value_;
  }

  void Apply(int64_t iterations, const UpdateSpan& u) const override {
    ApplyAdagrad(u.count, u.gradient, u.value, u.new_value, u.slots[0],
                 static_cast<float>(learning_rate_.At(iterations)), epsilon_);
  }

 private:
  const LearningRate learning_rate_;
  const float initial_accumulator_value_;
  const float epsilon_;
  const std::vector<std::string> slot_names_ = {"accumulator"};
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
