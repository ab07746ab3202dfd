#ifndef PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_
#define PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace parasol {

// Whether every number of `schedule` is in its range.
//   InvalidArgument  "<kind>.<field> is <value>; …".
absl::Status CheckLearningRateSchedule(
    const job::LearningRateSchedule& schedule);

// The learning rate as a function of the updates done. The formulas, of Keras's
// schedules, stand in job.proto; computed in double. Immutable.
class LearningRate {
 public:
  // Starts at `initial`, which is finite and not negative. With no kind chosen
  // it stays there.
  //   InvalidArgument  as CheckLearningRateSchedule.
  static absl::StatusOr<LearningRate> Create(
      double initial, const job::LearningRateSchedule& schedule);

  // For an element that has had `iterations` updates, 0 at its first one. Not
  // negative; finite unless an exponential grows (a decay_rate above 1).
  double At(int64_t iterations) const;

 private:
  LearningRate(double initial, const job::LearningRateSchedule& schedule)
      : initial_(initial), schedule_(schedule) {}

  double initial_;
  job::LearningRateSchedule schedule_;
};

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_LEARNING_RATE_H_
