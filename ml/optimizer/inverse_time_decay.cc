#include "ml/optimizer/inverse_time_decay.h"

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

void FillDefaults(job::InverseTimeDecay& spec) {
  PARASOL_SET_DEFAULT(spec, staircase, false);
}

absl::Status CheckRanges(const job::InverseTimeDecay& spec) {
  RETURN_IF_ERROR(
      CheckDecaySteps("inverse_time_decay.decay_steps", spec.decay_steps()));
  return CheckPositive("inverse_time_decay.decay_rate", spec.decay_rate());
}

double RateAt(double initial, const job::InverseTimeDecay& spec, double step) {
  return initial / (1 + spec.decay_rate() * Progress(step, spec.decay_steps(),
                                                     spec.staircase()));
}

}  // namespace

constinit const ScheduleKind kInverseTimeDecayKind = {
    .field = job::LearningRateSchedule::kInverseTimeDecay,
    .fill_defaults =
        [](job::LearningRateSchedule& schedule) {
          FillDefaults(*schedule.mutable_inverse_time_decay());
        },
    .check =
        [](const job::LearningRateSchedule& schedule) {
          return CheckRanges(schedule.inverse_time_decay());
        },
    .rate =
        [](double initial, const job::LearningRateSchedule& schedule,
           int64_t iterations) {
          return RateAt(initial, schedule.inverse_time_decay(), iterations);
        },
};

}  // namespace parasol
