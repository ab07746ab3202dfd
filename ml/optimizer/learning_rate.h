#ifndef PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_
#define PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/optimizer/schedule_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns all kinds of schedules, each once.
absl::Span<const ScheduleKind* const> ScheduleKinds();

// Sets unset fields to their defaults: the chosen schedule's to Keras's, and
// the warm-up's.
void FillDefaults(job::LearningRateSchedule& schedule);

// Checks that every number of `schedule` is in its range.
//   InvalidArgument  "<kind>.<field> is <value>; …".
absl::Status CheckLearningRateSchedule(
    const job::LearningRateSchedule& schedule);

// The learning rate as a function of the number of updates. Has the formulas of
// Keras's schedules, which job.proto writes out, and the warm-up over them;
// computes in double. Immutable.
class LearningRate {
 public:
  // Returns a learning rate that starts at `initial`, which is finite and not
  // negative, and stays there if `schedule` has no kind. A warm-up leads to it.
  //   InvalidArgument  the same as for CheckLearningRateSchedule().
  static absl::StatusOr<LearningRate> Create(
      double initial, const job::LearningRateSchedule& schedule);

  // Returns the rate for an element that has had `iterations` updates, 0 at its
  // first one. The rate is not negative, and finite unless an exponential grows
  // (a decay_rate above 1).
  double At(int64_t iterations) const;

 private:
  LearningRate(double initial, const job::LearningRateSchedule& schedule)
      : initial_(initial), schedule_(schedule) {}

  double initial_;
  job::LearningRateSchedule schedule_;  // defaults are filled in
  const ScheduleKind* kind_ = nullptr;  // null: the rate is constant
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_
