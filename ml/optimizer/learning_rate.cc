#include "ml/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

absl::Status CheckDecaySteps(absl::string_view name, int64_t decay_steps) {
  if (decay_steps >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", decay_steps, "; it must be at least 1"));
}

absl::Status Check(const job::ExponentialDecay& decay) {
  RETURN_IF_ERROR(
      CheckDecaySteps("exponential_decay.decay_steps", decay.decay_steps()));
  return CheckPositive("exponential_decay.decay_rate", decay.decay_rate());
}

absl::Status Check(const job::PiecewiseConstantDecay& decay) {
  if (decay.boundary_size() != decay.value_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "piecewise_constant_decay.value is a list of ", decay.value_size(),
        " for ", decay.boundary_size(),
        " boundaries; it must have one for each, the rate after it"));
  }
  int64_t previous = -1;
  for (int i = 0; i < decay.boundary_size(); ++i) {
    if (decay.boundary(i) <= previous) {
      return absl::InvalidArgumentError(
          absl::StrCat("piecewise_constant_decay.boundary[", i, "] is ",
                       decay.boundary(i), "; it must be above ", previous));
    }
    previous = decay.boundary(i);
    RETURN_IF_ERROR(CheckNotNegative(
        absl::StrCat("piecewise_constant_decay.value[", i, "]"),
        decay.value(i)));
  }
  return absl::OkStatus();
}

absl::Status Check(const job::PolynomialDecay& decay) {
  RETURN_IF_ERROR(
      CheckDecaySteps("polynomial_decay.decay_steps", decay.decay_steps()));
  RETURN_IF_ERROR(CheckNotNegative("polynomial_decay.end_learning_rate",
                                   decay.end_learning_rate()));
  return CheckNotNegative("polynomial_decay.power", decay.power());
}

absl::Status Check(const job::InverseTimeDecay& decay) {
  RETURN_IF_ERROR(
      CheckDecaySteps("inverse_time_decay.decay_steps", decay.decay_steps()));
  return CheckPositive("inverse_time_decay.decay_rate", decay.decay_rate());
}

absl::Status Check(const job::CosineDecay& decay) {
  RETURN_IF_ERROR(
      CheckDecaySteps("cosine_decay.decay_steps", decay.decay_steps()));
  return CheckUpToOne("cosine_decay.alpha", decay.alpha());
}

double Progress(double step, double decay_steps, bool staircase) {
  const double progress = step / decay_steps;
  return staircase ? std::floor(progress) : progress;
}

double RateAt(double initial, const job::ExponentialDecay& decay, double step) {
  return initial *
         std::pow(decay.decay_rate(),
                  Progress(step, decay.decay_steps(), decay.staircase()));
}

double RateAt(double initial, const job::PiecewiseConstantDecay& decay,
              int64_t step) {
  const auto& boundaries = decay.boundary();
  const auto passed =
      std::lower_bound(boundaries.begin(), boundaries.end(), step) -
      boundaries.begin();
  return passed == 0 ? initial : decay.value(static_cast<int>(passed - 1));
}

double RateAt(double initial, const job::PolynomialDecay& decay, double step) {
  const double end =
      decay.has_end_learning_rate() ? decay.end_learning_rate() : .0001;
  const double power = decay.has_power() ? decay.power() : 1;
  double progress = step / static_cast<double>(decay.decay_steps());
  if (!decay.cycle()) {
    progress = std::min(progress, 1.0);
  } else if (progress > 0) {
    progress /= std::ceil(progress);
  }
  return (initial - end) * std::pow(1 - progress, power) + end;
}

double RateAt(double initial, const job::InverseTimeDecay& decay, double step) {
  return initial / (1 + decay.decay_rate() * Progress(step, decay.decay_steps(),
                                                      decay.staircase()));
}

double RateAt(double initial, const job::CosineDecay& decay, double step) {
  const double progress =
      std::min(step / static_cast<double>(decay.decay_steps()), 1.0);
  const double fraction = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return initial * ((1 - decay.alpha()) * fraction + decay.alpha());
}

}  // namespace

absl::Status CheckLearningRateSchedule(
    const job::LearningRateSchedule& schedule) {
  switch (schedule.kind_case()) {
    case job::LearningRateSchedule::kExponentialDecay:
      return Check(schedule.exponential_decay());
    case job::LearningRateSchedule::kPiecewiseConstantDecay:
      return Check(schedule.piecewise_constant_decay());
    case job::LearningRateSchedule::kPolynomialDecay:
      return Check(schedule.polynomial_decay());
    case job::LearningRateSchedule::kInverseTimeDecay:
      return Check(schedule.inverse_time_decay());
    case job::LearningRateSchedule::kCosineDecay:
      return Check(schedule.cosine_decay());
    case job::LearningRateSchedule::KIND_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<LearningRate> LearningRate::Create(
    double initial, const job::LearningRateSchedule& schedule) {
  RETURN_IF_ERROR(CheckLearningRateSchedule(schedule));
  return LearningRate(initial, schedule);
}

double LearningRate::At(int64_t iterations) const {
  switch (schedule_.kind_case()) {
    case job::LearningRateSchedule::kExponentialDecay:
      return RateAt(initial_, schedule_.exponential_decay(), iterations);
    case job::LearningRateSchedule::kPiecewiseConstantDecay:
      return RateAt(initial_, schedule_.piecewise_constant_decay(), iterations);
    case job::LearningRateSchedule::kPolynomialDecay:
      return RateAt(initial_, schedule_.polynomial_decay(), iterations);
    case job::LearningRateSchedule::kInverseTimeDecay:
      return RateAt(initial_, schedule_.inverse_time_decay(), iterations);
    case job::LearningRateSchedule::kCosineDecay:
      return RateAt(initial_, schedule_.cosine_decay(), iterations);
    case job::LearningRateSchedule::KIND_NOT_SET:
      break;
  }
  return initial_;
}

}  // namespace parasol
