#include "ml/optimizer/sgd.h"

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
void ApplyPlain(size_t count, const std::byte* gradient, const float* value,
                float* new_value, float learning_rate) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    new_value[i] = value[i] - learning_rate * LoadFloat(gradient, i);
  }
}

PARASOL_MULTIVERSION
void ApplyMomentum(size_t count, const std::byte* gradient, const float* value,
                   float* new_value, float* accumulator, float learning_rate,
                   float momentum) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float a =
        momentum * accumulator[i] - learning_rate * LoadFloat(gradient, i);
    accumulator[i] = a;
    new_value[i] = value[i] + a;
  }
}

PARASOL_MULTIVERSION
void ApplyNesterov(size_t count, const std::byte* gradient, const float* value,
                   float* new_value, float* accumulator, float learning_rate,
                   float momentum) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float step = learning_rate * LoadFloat(gradient, i);
    const float a = momentum * accumulator[i] - step;
    accumulator[i] = a;
    new_value[i] = value[i] + (momentum * a - step);
  }
}

class Sgd final : public Optimizer {
 public:
  Sgd(LearningRate learning_rate, double momentum, bool nesterov)
      : learning_rate_(std::move(learning_rate)),
        momentum_(static_cast<float>(momentum)),
        nesterov_(nesterov) {
    if (momentum > 0) slot_names_.push_back("momentum");
  }

  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }

  float InitialSlotValue(size_t) const override { return 0; }

  void Apply(int64_t iterations, const UpdateSpan& u) const override {
    const auto learning_rate =
        static_cast<float>(learning_rate_.At(iterations));
    if (slot_names_.empty()) {
      ApplyPlain(u.count, u.gradient, u.value, u.new_value, learning_rate);
    } else if (nesterov_) {
      ApplyNesterov(u.count, u.gradient, u.value, u.new_value, u.slots[0],
                    learning_rate, momentum_);
    } else {
      ApplyMomentum(u.count, u.gradient, u.value, u.new_value, u.slots[0],
                    learning_rate, momentum_);
    }
  }

 private:
  const LearningRate learning_rate_;
  const float momentum_;
  const bool nesterov_;
  std::vector<std::string> slot_names_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeSgd(
    const job::Sgd& spec, const job::LearningRateSchedule& schedule) {
  const double initial = spec.has_learning_rate() ? spec.learning_rate() : .01;
  RETURN_IF_ERROR(CheckNotNegative("sgd.learning_rate", initial));
  RETURN_IF_ERROR(CheckUpToOne("sgd.momentum", spec.momentum()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(initial, schedule));
  return std::make_unique<Sgd>(std::move(learning_rate), spec.momentum(),
                               spec.nesterov());
}

}  // namespace parasol
