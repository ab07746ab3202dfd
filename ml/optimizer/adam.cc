#include "ml/optimizer/adam.h"

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

// What is the same for all elements of one update.
struct Factors {
  float alpha;
  float beta_1;
  float one_minus_beta_1;
  float beta_2;
  float one_minus_beta_2;
  float epsilon;
};

PARASOL_MULTIVERSION
void ApplyAdam(size_t count, const std::byte* gradient, const float* value,
               float* new_value, float* m, float* v, Factors f) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float g = LoadFloat(gradient, i);
    const float new_m = f.beta_1 * m[i] + f.one_minus_beta_1 * g;
    const float new_v = f.beta_2 * v[i] + f.one_minus_beta_2 * (g * g);
    m[i] = new_m;
    v[i] = new_v;
    new_value[i] = value[i] - f.alpha * new_m / (std::sqrt(new_v) + f.epsilon);
  }
}

PARASOL_MULTIVERSION
void ApplyAmsgrad(size_t count, const std::byte* gradient, const float* value,
                  float* new_value, float* m, float* v, float* vhat,
                  Factors f) {
  PARASOL_INDEPENDENT_ITERATIONS
  for (size_t i = 0; i < count; ++i) {
    const float g = LoadFloat(gradient, i);
    const float new_m = f.beta_1 * m[i] + f.one_minus_beta_1 * g;
    const float new_v = f.beta_2 * v[i] + f.one_minus_beta_2 * (g * g);
    const float new_vhat = vhat[i] < new_v ? new_v : vhat[i];
    m[i] = new_m;
    v[i] = new_v;
    vhat[i] = new_vhat;
    new_value[i] =
        value[i] - f.alpha * new_m / (std::sqrt(new_vhat) + f.epsilon);
  }
}

struct Hyperparameters {
  double beta_1;
  double beta_2;
  double epsilon;
  bool amsgrad;
};

class Adam final : public Optimizer {
 public:
  Adam(LearningRate learning_rate, const Hyperparameters& hyper)
      : learning_rate_(std::move(learning_rate)), hyper_(hyper) {
    if (hyper.amsgrad) slot_names_.push_back("vhat");
  }

  const std::vector<std::string>& slot_names() const override {
    return slot_names_;
  }

  float InitialSlotValue(size_t) const override { return 0; }

  void Apply(int64_t iterations, const UpdateSpan& u) const override {
    const Factors factors = FactorsAt(iterations);
    if (hyper_.amsgrad) {
      ApplyAmsgrad(u.count, u.gradient, u.value, u.new_value, u.slots[0],
                   u.slots[1], u.slots[2], factors);
    } else {
      ApplyAdam(u.count, u.gradient, u.value, u.new_value, u.slots[0],
                u.slots[1], factors);
    }
  }

 private:
  Factors FactorsAt(int64_t iterations) const {
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
  std::vector<std::string> slot_names_ = {"m", "v"};
};

}  // namespace

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdam(
    const job::Adam& spec, const job::LearningRateSchedule& schedule) {
  const double initial = spec.has_learning_rate() ? spec.learning_rate() : .001;
  const Hyperparameters hyper = {
      .beta_1 = spec.has_beta_1() ? spec.beta_1() : .9,
      .beta_2 = spec.has_beta_2() ? spec.beta_2() : .999,
      .epsilon = spec.has_epsilon() ? spec.epsilon() : 1e-7,
      .amsgrad = spec.amsgrad()};
  RETURN_IF_ERROR(CheckNotNegative("adam.learning_rate", initial));
  RETURN_IF_ERROR(CheckBelowOne("adam.beta_1", hyper.beta_1));
  RETURN_IF_ERROR(CheckBelowOne("adam.beta_2", hyper.beta_2));
  RETURN_IF_ERROR(CheckNotNegative("adam.epsilon", hyper.epsilon));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(initial, schedule));
  return std::make_unique<Adam>(std::move(learning_rate), hyper);
}

}  // namespace parasol
