#include "loop/training.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/progress/recorded_values.h"

namespace parasol::loop {

Training::Training(Strategy& strategy, const Options& options)
    : strategy_(strategy), options_(options) {
  strategy.EndAfter(options.iterations);
}

bool Training::Next() {
  if (is_over_) return false;
  const absl::StatusOr<bool> goes_on = has_begun_ ? End() : Begin();
  has_begun_ = true;
  status_ = goes_on.status();
  if (status_.ok() && !*goes_on) {
    status_ = absl::CancelledError("the program was told to stop");
  }
  is_over_ = !status_.ok() || !Take();
  return !is_over_;
}

void Training::Record(absl::string_view name, double value) {
  if (names_.find(name) == names_.end()) {
    absl::Status fault = CheckRecordedName(name);
    if (fault.ok() && names_.size() == kMostRecordedNames) {
      fault = absl::ResourceExhaustedError(
          absl::StrCat("\"", name, "\": a program records values by ",
                       kMostRecordedNames, " names at most"));
    }
    if (!fault.ok()) return fault_.Update(fault);
    names_.emplace(name);
  }
  values_.emplace_back(name, value);
}

bool Training::Take() {
  const absl::StatusOr<std::optional<int64_t>> next =
      strategy_.NextIteration(iteration_);
  status_ = next.status();
  if (!status_.ok() || !*next) return false;
  iteration_ = **next;
  return true;
}

absl::StatusOr<bool> Training::Begin() {
  strategy_.EndAfter(options_.iterations);
  RETURN_IF_ERROR(strategy_.Start());
  iteration_ = strategy_.committed();
  return true;
}

absl::StatusOr<bool> Training::End() {
  RETURN_IF_ERROR(fault_) << "Record()";
  ++iteration_;
  // Each process tells its share.
  const int processes = strategy_.world().num_processes();
  const bool has_end =
      options_.iterations < std::numeric_limits<int64_t>::max();
  ASSIGN_OR_RETURN(
      const bool goes_on,
      strategy_.Commit({.step = iteration_,
                        .examples = examples_ / processes,
                        .loss_sum = loss_sum_ / processes,
                        .end_step = has_end ? options_.iterations : 0,
                        .values = std::exchange(values_, {})}));
  examples_ = 0;
  loss_sum_ = 0;
  return goes_on;
}

}  // namespace parasol::loop
