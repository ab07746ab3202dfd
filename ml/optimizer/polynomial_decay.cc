#include "ml/optimizer/polynomial_decay.h"

#include <algorithm>
#include <cmath>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

void FillDefaults(job::PolynomialDecay& spec) {
  PARASOL_SET_DEFAULT(spec, end_learning_rate, 0.0001);
  PARASOL_SET_DEFAULT(spec, power, 1.0);
  PARASOL_SET_DEFAULT(spec, cycle, false);
}

absl::Status CheckRanges(const job::PolynomialDecay& spec) {
  RETURN_IF_ERROR(
      CheckDecaySteps("polynomial_decay.decay_steps", spec.decay_steps()));
  RETURN_IF_ERROR(CheckNotNegative("polynomial_decay.end_learning_rate",
                                   spec.end_learning_rate()));
  return CheckNotNegative("polynomial_decay.power", spec.power());
}

double RateAt(double initial, const job::PolynomialDecay& spec, double step) {
  const double end = spec.end_learning_rate();
  double progress = step / static_cast<double>(spec.decay_steps());
  if (!spec.cycle()) {
    progress = std::min(progress, 1.0);
  } else if (progress > 0) {
    progress /= std::ceil(progress);
  }
  return (initial - end) * std::pow(1 - progress, spec.power()) + end;
}

}  // namespace

constinit const ScheduleKind kPolynomialDecayKind = {
    .field = job::LearningRateSchedule::kPolynomialDecay,
    .fill_defaults =
        [](job::LearningRateSchedule& schedule) {
          FillDefaults(*schedule.mutable_polynomial_decay());
        },
    .check =
        [](const job::LearningRateSchedule& schedule) {
          return CheckRanges(schedule.polynomial_decay());
        },
    .rate =
        [](double initial, const job::LearningRateSchedule& schedule,
           int64_t iterations) {
          return RateAt(initial, schedule.polynomial_decay(), iterations);
        },
};

}  // namespace parasol
