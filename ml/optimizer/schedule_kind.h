#ifndef PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_
#define PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace parasol {

// One kind of learning-rate schedule: all that differs between the kinds of
// job::LearningRateSchedule. A kind is a constant of its own file
// (kCosineDecayKind in ml/optimizer/cosine_decay.h), and has one line in the
// list of ml/optimizer/learning_rate.cc. Each function gets a schedule of this
// kind. Formulas and defaults come from tf.keras.optimizers.schedules.
struct ScheduleKind {
  // The kind's field in job::LearningRateSchedule.
  job::LearningRateSchedule::KindCase field =
      job::LearningRateSchedule::KIND_NOT_SET;

  // Sets the unset fields of the kind's message. Null: no field has a default.
  void (*fill_defaults)(job::LearningRateSchedule& schedule) = nullptr;

  // Checks that each field is in its range.
  //   InvalidArgument  "<kind>.<field> is <value>; …".
  absl::Status (*check)(const job::LearningRateSchedule& schedule) = nullptr;

  // Returns the rate after `iterations` updates of one that starts at
  // `initial`. All fields are set and in their ranges.
  double (*rate)(double initial, const job::LearningRateSchedule& schedule,
                 int64_t iterations) = nullptr;
};

// Checks the decay_steps of a schedule.
//   InvalidArgument  it is less than 1: "<name> is <value>; …".
inline absl::Status CheckDecaySteps(absl::string_view name,
                                    int64_t decay_steps) {
  if (decay_steps >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is ", decay_steps, "; it must be at least 1"));
}

// Returns step / decay_steps, rounded down if `staircase`.
inline double Progress(double step, double decay_steps, bool staircase) {
  const double progress = step / decay_steps;
  return staircase ? std::floor(progress) : progress;
}

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_
