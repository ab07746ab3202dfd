#include "ml/optimizer/exponential_decay.h"

#include <cmath>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

void FillDefaults(job::ExponentialDecay& spec) {
  PARASOL_SET_DEFAULT(spec, staircase, false);
}

absl::Status CheckRanges(const job::ExponentialDecay& spec) {
  RETURN_IF_ERROR(
      CheckDecaySteps("exponential_decay.decay_steps", spec.decay_steps()));
  return CheckPositive("exponential_decay.decay_rate", spec.decay_rate());
}

double RateAt(double initial, const job::ExponentialDecay& spec, double step) {
  return initial *
         std::pow(spec.decay_rate(),
                  Progress(step, spec.decay_steps(), spec.staircase()));
}

}  // namespace

constinit const ScheduleKind kExponentialDecayKind = {
    .field = job::LearningRateSchedule::kExponentialDecay,
    .fill_defaults =
        [](job::LearningRateSchedule& schedule) {
          FillDefaults(*schedule.mutable_exponential_decay());
        },
    .check =
        [](const job::LearningRateSchedule& schedule) {
          return CheckRanges(schedule.exponential_decay());
        },
    .rate =
        [](double initial, const job::LearningRateSchedule& schedule,
           int64_t iterations) {
          return RateAt(initial, schedule.exponential_decay(), iterations);
        },
};

}  // namespace parasol
