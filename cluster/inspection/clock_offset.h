#ifndef PARASOL_CLUSTER_INSPECTION_CLOCK_OFFSET_H_
#define PARASOL_CLUSTER_INSPECTION_CLOCK_OFFSET_H_

#include <optional>

#include "absl/time/time.h"

namespace parasol {

// How far another process's clock is ahead of this one's, by the answer of the
// least delay: it was given between the question and its arrival, so the error
// is half of the delay at most. Clocks drift, so an old answer gives way to
// newer ones that took somewhat longer. Pure.
class ClockOffset {
 public:
  // Two clocks drift apart by less than this share of the time.
  static constexpr double kDrift = 1e-4;

  // Takes an answer of the other's time, `there`, to a question of `sent` that
  // came at `received`, both on this clock.
  void Observe(absl::Time sent, absl::Time received, absl::Time there);

  // How far the other clock is ahead, and how long the answer took; 0 before
  // there is one.
  absl::Duration ahead() const { return ahead_; }
  absl::Duration delay() const { return delay_; }

 private:
  // The time at which the best answer came; nullopt: there is none.
  std::optional<absl::Time> received_;
  absl::Duration ahead_;
  absl::Duration delay_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_INSPECTION_CLOCK_OFFSET_H_
