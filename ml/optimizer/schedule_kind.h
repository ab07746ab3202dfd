#ifndef PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_
#define PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace parasol {

// One kind of learning-rate schedule: all that differs between the kinds of
// job::LearningRateSchedule. A kind is a constant of its own file
// (kCosineDecayKind in ml/optimizer/cosine_decay.h), and has one line in the
// list of ml/optimizer/learning_rate.cc. Each function gets a schedule of this
// kind. The formulas and defaults are those of tf.keras.optimizers.schedules.
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

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_SCHEDULE_KIND_H_
