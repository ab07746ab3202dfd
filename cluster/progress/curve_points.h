#ifndef PARASOL_CLUSTER_PROGRESS_CURVE_POINTS_H_
#define PARASOL_CLUSTER_PROGRESS_CURVE_POINTS_H_

#include <cstdint>

namespace parasol {

// The steps at which the curves of a training have a point: the end of each
// epoch, and each multiple of summary.every_steps. The steps between two points
// are a part of an epoch: a whole one, without every_steps. Parts are numbered
// from 0 over all epochs. Pure.
class CurvePoints {
 public:
  // Points that are not known.
  CurvePoints() = default;
  // `every_steps`: 0 if there are no points within epochs. The points are not
  // known if `steps_per_epoch` is 0.
  CurvePoints(int64_t steps_per_epoch, int64_t every_steps)
      : steps_per_epoch_(steps_per_epoch), every_steps_(every_steps) {}

  bool are_known() const { return steps_per_epoch_ > 0; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }

  // Returns true if `step` steps, which are not 0, end an epoch.
  bool EndsEpoch(int64_t step) const {
    return are_known() && step % steps_per_epoch_ == 0;
  }
  // Returns true if there is a point at `step`. Multiples of every_steps are
  // points also while epochs are not known.
  bool IsPoint(int64_t step) const {
    return EndsEpoch(step) || (every_steps_ > 0 && step % every_steps_ == 0);
  }
  // Returns the first point behind `step`. They must be known.
  int64_t NextAfter(int64_t step) const;
  // Returns the part of the step, or the batch, of this number, from 0 over all
  // epochs. They must be known.
  int64_t PartOf(int64_t number) const;

 private:
  int64_t steps_per_epoch_ = 0;
  int64_t every_steps_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_CURVE_POINTS_H_
