#include "ml/optimizer/adagrad.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/rule/adagrad.h"
#include "ml/optimizer/rule/rowwise_adagrad.h"
#include "ml/optimizer/rule_optimizer.h"

namespace parasol {
namespace {

class Adagrad final : public RuleOptimizer<Adagrad> {
 public:
  Adagrad(LearningRate learning_rate, const job::Adagrad& spec)
      : RuleOptimizer({.names = {"accumulator"},
                       .initial_values = {static_cast<float>(
                           spec.initial_accumulator_value())}}),
        learning_rate_(std::move(learning_rate)),
        epsilon_(static_cast<float>(spec.epsilon())) {}

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    update(AdagradRule{static_cast<float>(learning_rate_.At(iterations)),
                       epsilon_});
  }

 private:
  const LearningRate learning_rate_;
  const float epsilon_;
};

class RowwiseAdagrad final : public RuleOptimizer<RowwiseAdagrad> {
 public:
  // The slot's name differs from Adagrad's, so that a checkpoint of one is none
  // of the other.
  RowwiseAdagrad(LearningRate learning_rate, const job::RowwiseAdagrad& spec)
      : RuleOptimizer({.names = {"row_accumulator"},
                       .initial_values = {static_cast<float>(
                           spec.initial_accumulator_value())}}),
        learning_rate_(std::move(learning_rate)),
        epsilon_(static_cast<float>(spec.epsilon())) {}

  size_t SlotWidth(size_t, size_t) const override { return 1; }

  template <typename Update>
  void WithRule(int64_t iterations, const Update& update) const {
    update(RowwiseAdagradRule{static_cast<float>(learning_rate_.At(iterations)),
                              epsilon_});
  }

 private:
  const LearningRate learning_rate_;
  const float epsilon_;
};

}  // namespace

void FillDefaults(job::Adagrad& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .001);
  PARASOL_SET_DEFAULT(spec, initial_accumulator_value, .1);
  FillEpsilon(spec);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeAdagrad(
    const job::Adagrad& given, const job::LearningRateSchedule& schedule) {
  job::Adagrad spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("adagrad.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckNotNegative("adagrad.initial_accumulator_value",
                                   spec.initial_accumulator_value()));
  // An element with no gradient yet may divide by it.
  RETURN_IF_ERROR(CheckPositive("adagrad.epsilon", spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<Adagrad>(std::move(learning_rate), spec);
}

void FillDefaults(job::RowwiseAdagrad& spec) {
  PARASOL_SET_DEFAULT(spec, learning_rate, .01);
  PARASOL_SET_DEFAULT(spec, initial_accumulator_value, 0);
  PARASOL_SET_DEFAULT(spec, epsilon, 1e-8);
}

absl::StatusOr<std::unique_ptr<const Optimizer>> MakeRowwiseAdagrad(
    const job::RowwiseAdagrad& given,
    const job::LearningRateSchedule& schedule) {
  job::RowwiseAdagrad spec = given;
  FillDefaults(spec);
  RETURN_IF_ERROR(
      CheckNotNegative("rowwise_adagrad.learning_rate", spec.learning_rate()));
  RETURN_IF_ERROR(CheckNotNegative("rowwise_adagrad.initial_accumulator_value",
                                   spec.initial_accumulator_value()));
  // A row with no gradient yet may divide by it.
  RETURN_IF_ERROR(CheckPositive("rowwise_adagrad.epsilon", spec.epsilon()));
  ASSIGN_OR_RETURN(LearningRate learning_rate,
                   LearningRate::Create(spec.learning_rate(), schedule));
  return std::make_unique<RowwiseAdagrad>(std::move(learning_rate), spec);
}

}  // namespace parasol
