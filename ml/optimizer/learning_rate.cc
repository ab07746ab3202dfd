#include "ml/optimizer/learning_rate.h"

#include "base/status_macros.h"
#include "ml/optimizer/cosine_decay.h"
#include "ml/optimizer/exponential_decay.h"
#include "ml/optimizer/inverse_time_decay.h"
#include "ml/optimizer/piecewise_constant_decay.h"
#include "ml/optimizer/polynomial_decay.h"
#include "ml/optimizer/warmup.h"

namespace parasol {
namespace {

constexpr const ScheduleKind* kKinds[] = {
    &kCosineDecayKind,      &kExponentialDecayKind,
    &kInverseTimeDecayKind, &kPiecewiseConstantDecayKind,
    &kPolynomialDecayKind,
};

// Returns the kind of `schedule`; null if it has none: the rate is constant.
const ScheduleKind* KindOf(const job::LearningRateSchedule& schedule) {
  for (const ScheduleKind* const kind : kKinds) {
    if (kind->field == schedule.kind_case()) return kind;
  }
  return nullptr;
}

}  // namespace

absl::Span<const ScheduleKind* const> ScheduleKinds() { return kKinds; }

void FillDefaults(job::LearningRateSchedule& schedule) {
  const ScheduleKind* const kind = KindOf(schedule);
  if (kind != nullptr && kind->fill_defaults != nullptr) {
    kind->fill_defaults(schedule);
  }
  if (schedule.has_warmup()) FillDefaults(*schedule.mutable_warmup());
}

absl::Status CheckLearningRateSchedule(
    const job::LearningRateSchedule& schedule) {
  if (schedule.has_warmup()) {
    RETURN_IF_ERROR(CheckWarmup(schedule.warmup()));
  }
  const ScheduleKind* const kind = KindOf(schedule);
  return kind == nullptr ? absl::OkStatus() : kind->check(schedule);
}

absl::StatusOr<LearningRate> LearningRate::Create(
    double initial, const job::LearningRateSchedule& schedule) {
  RETURN_IF_ERROR(CheckLearningRateSchedule(schedule));
  LearningRate rate(initial, schedule);
  FillDefaults(rate.schedule_);
  rate.kind_ = KindOf(schedule);
  return rate;
}

double LearningRate::At(int64_t iterations) const {
  const double rate = kind_ == nullptr
                          ? initial_
                          : kind_->rate(initial_, schedule_, iterations);
  return schedule_.has_warmup() ? WarmedUp(schedule_.warmup(), rate, iterations)
                                : rate;
}

}  // namespace parasol
