#ifndef PARASOL_COORDINATOR_STEPS_EPOCH_LOSSES_H_
#define PARASOL_COORDINATOR_STEPS_EPOCH_LOSSES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "cluster/progress/curve_points.h"

namespace parasol {

// The losses of a training's epochs, or with summary.every_steps of their parts
// (CurvePoints); an epoch here is either. Workers say of which epoch their
// examples are, and they say it late: with a heartbeat. So an epoch that has
// ended is complete when all of its examples are reported, or kReportLimit
// later; parts, of which nobody knows the number of examples, always then. What
// is reported after that counts nowhere. Pure.
class EpochLosses {
 public:
  static constexpr absl::Duration kReportLimit = absl::Seconds(2);
  // Number of the newest ends that are kept.
  static constexpr size_t kMaxEnds = 256;
  // Number of epochs beyond the complete ones of which reports are taken.
  static constexpr int64_t kMaxAhead = 1024;

  struct Sums {
    double loss_sum = 0;
    int64_t examples = 0;
    // Sums of the model's named outputs; empty before a report has them.
    std::vector<double> output_loss_sums = {};
  };
  // The end of an epoch, with the sums over it and the epochs before it, as far
  // as this process has seen them.
  struct End {
    int64_t epoch = 0;
    int64_t step = 0;
    int64_t steps = 0;  // number of its own
    absl::Time time;
    // The step behind which this process has seen all of it: `step` if nothing.
    int64_t seen_from = 0;
    Sums sums = {};
    bool is_complete = false;
  };

  // The training begins, or goes on, at `first_step`.
  explicit EpochLosses(int64_t first_step)
      : first_step_(first_step), seen_from_(first_step) {}

  // Adds a worker's examples of an epoch; the first one is 0. They count with
  // the next Reach().
  void Add(int64_t epoch, const Sums& sums);
  // Notes that steps up to the next Reach() may have been made for another
  // chief, to whom their losses were reported.
  void Miss() { has_missed_ = true; }
  // Returns the last of these steps, or `first_step` if there are none.
  int64_t seen_from() const { return seen_from_; }
  // Returns true if what is added to the epoch counts.
  bool IsOpen(int64_t epoch) const {
    return epoch >= open_ && epoch < open_ + kMaxAhead;
  }

  // Takes the time, and the number of steps that are done. Does nothing before
  // the points are known. `examples_per_epoch`: nullopt if it is not known.
  void Reach(int64_t global_step, const CurvePoints& points,
             std::optional<int64_t> examples_per_epoch, absl::Time now);

  // The ends of the newest epochs, in order; complete ones come first.
  const std::deque<End>& ends() const { return ends_; }
  // Returns the sums over all that was reported in time.
  Sums Total() const;

 private:
  void Begin(const CurvePoints& points);
  void SeeFrom(int64_t step);
  // Completes the first epoch that is open.
  void Complete(End& end);
  bool IsReported(const End& end, const CurvePoints& points,
                  std::optional<int64_t> examples_per_epoch) const;

  const int64_t first_step_;
  int64_t seen_from_;
  // Workers may have told of steps before the first Reach().
  bool has_missed_ = true;
  bool has_begun_ = false;
  // The epoch within which the training goes on.
  std::optional<int64_t> partial_;
  int64_t next_ = 0;              // the epoch that ends next
  int64_t next_begin_ = 0;        // the steps before it
  int64_t next_end_ = 0;          // and with it
  int64_t open_ = 0;              // the first epoch that is not complete
  Sums complete_;                 // sums of all epochs before it
  std::map<int64_t, Sums> sums_;  // key: an open epoch
  std::deque<End> ends_;
  size_t open_ends_ = 0;  // number of the ends that are not complete
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_EPOCH_LOSSES_H_
