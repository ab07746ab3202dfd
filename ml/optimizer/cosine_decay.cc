#include "ml/optimizer/cosine_decay.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/set_default.h"
#include "base/status_macros.h"
#include "ml/optimizer/hyperparameter.h"

namespace parasol {
namespace {

void FillDefaults(job::CosineDecay& spec) {
  PARASOL_SET_DEFAULT(spec, alpha, 0.0);
}

absl::Status CheckRanges(const job::CosineDecay& spec) {
  RETURN_IF_ERROR(
      CheckDecaySteps("cosine_decay.decay_steps", spec.decay_steps()));
  return CheckUpToOne("cosine_decay.alpha", spec.alpha());
}

double RateAt(double initial, const job::CosineDecay& spec, double step) {
  const double progress =
      std::min(step / static_cast<double>(spec.decay_steps()), 1.0);
  const double fraction = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return initial * ((1 - spec.alpha()) * fraction + spec.alpha());
}

}  // namespace

constinit const ScheduleKind kCosineDecayKind = {
    .field = job::LearningRateSchedule::kCosineDecay,
    .fill_defaults =
        [](job::LearningRateSchedule& schedule) {
          FillDefaults(*schedule.mutable_cosine_decay());
        },
    .check =
        [](const job::LearningRateSchedule& schedule) {
          return CheckRanges(schedule.cosine_decay());
        },
    .rate =
        [](double initial, const job::LearningRateSchedule& schedule,
           int64_t iterations) {
          return RateAt(initial, schedule.cosine_decay(), iterations);
        },
};

}  // namespace parasol
