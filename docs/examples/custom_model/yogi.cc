// An optimizer of one's own: Yogi (Zaheer et al., "Adaptive Methods for
// Nonconvex Optimization", 2018), with the slots "m" and "v",
//
//   m = β₁·m + (1 - β₁)·g
//   v = v - (1 - β₂)·sign(v - g²)·g²
//   w = w - lr·m / (√v + ε)
//
// v begins with 1e-6. Rows that a gradient leaves out stay as they are.

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "ml/custom/custom_parameters.h"
#include "ml/optimizer/custom_optimizer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

class Yogi : public CustomUpdate {
 public:
  Yogi(double beta_1, double beta_2, double epsilon)
      : beta_1_(static_cast<float>(beta_1)),
        one_minus_beta_1_(static_cast<float>(1 - beta_1)),
        one_minus_beta_2_(static_cast<float>(1 - beta_2)),
        epsilon_(static_cast<float>(epsilon)) {}

  std::vector<Slot> slots() const override {
    return {{.name = "m"}, {.name = "v", .initial_value = 1e-6f}};
  }

  void Apply(const Step& step, const Elements& elements) const override {
    const auto rate = static_cast<float>(step.learning_rate);
    float* const m = elements.slots[0];
    float* const v = elements.slots[1];
    for (size_t i = 0; i < elements.count; ++i) {
      const float g = elements.gradient[i];
      const float square = g * g;
      m[i] = beta_1_ * m[i] + one_minus_beta_1_ * g;
      const float sign = v[i] > square ? 1 : v[i] < square ? -1 : 0;
      v[i] -= one_minus_beta_2_ * sign * square;
      elements.value[i] -= rate * m[i] / (std::sqrt(v[i]) + epsilon_);
    }
  }

 private:
  const float beta_1_;
  const float one_minus_beta_1_;
  const float one_minus_beta_2_;
  const float epsilon_;
};

absl::StatusOr<std::unique_ptr<const CustomUpdate>> MakeYogi(
    const job::CustomOptimizer& spec) {
  CustomParameters parameters(spec.parameter());
  const double beta_1 = parameters.Number("beta_1", .9, 0, .9999999);
  const double beta_2 = parameters.Number("beta_2", .999, 0, .9999999);
  const double epsilon = parameters.Number("epsilon", 1e-3, 1e-12, 1);
  RETURN_IF_ERROR(parameters.CheckAllRead());
  return std::make_unique<Yogi>(beta_1, beta_2, epsilon);
}

const CustomOptimizerRegistration kRegistration("yogi", MakeYogi);

}  // namespace
}  // namespace parasol
