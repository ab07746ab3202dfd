#include "loop/training.h"

#include <utility>

#include "base/status_macros.h"

namespace parasol::loop {

bool Training::Next() {
  if (is_over_) return false;
  const absl::StatusOr<bool> goes_on = has_begun_ ? End() : Begin();
  has_begun_ = true;
  status_ = goes_on.status();
  if (status_.ok() && !*goes_on) {
    status_ = absl::CancelledError("the program was told to stop");
  }
  is_over_ = !status_.ok() || iteration_ >= options_.iterations;
  return !is_over_;
}

absl::StatusOr<bool> Training::Begin() {
  strategy_.world().peers().EndsAt(options_.iterations);
  RETURN_IF_ERROR(strategy_.Start());
  iteration_ = strategy_.committed();
  return true;
}

absl::StatusOr<bool> Training::End() {
  ++iteration_;
  // Each process tells its share.
  const int processes = strategy_.world().num_processes();
  ASSIGN_OR_RETURN(const bool goes_on,
                   strategy_.Commit({.step = iteration_,
                                     .examples = examples_ / processes,
                                     .loss_sum = loss_sum_ / processes}));
  examples_ = 0;
  loss_sum_ = 0;
  return goes_on;
}

}  // namespace parasol::loop
