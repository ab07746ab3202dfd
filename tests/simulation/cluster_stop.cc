#include "tests/simulation/cluster_stop.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol::simulation {
namespace {

// Longest time from the last signal to the last exit, beside a step's.
constexpr absl::Duration kMaxStop = absl::Seconds(2);

}  // namespace

void ClusterStop::Begin(const Fault& fault,
                        const std::vector<Process*>& processes) {
  const absl::Time now = world_.loop().now();
  is_going_ = true;
  last_exit_ = last_told_ = now;
  for (Process* const process : processes) {
    const absl::Time at =
        now + world_.random().Between(absl::ZeroDuration(),
                                      absl::Milliseconds(fault.amount));
    last_told_ = std::max(last_told_, at);
    world_.loop().At(at, [this, process] {
      if (process->alive()) terminate_(*process);
    });
  }
  world_.loop().At(std::max(now + fault.length, last_told_ + kMaxStop),
                   [this] { End(); });
}

bool ClusterStop::TakesExit(const absl::Status& status) {
  last_exit_ = world_.loop().now();
  return is_going_ &&
         (absl::IsUnavailable(status) || absl::IsCancelled(status));
}

void ClusterStop::End() {
  if (!is_going_) return;
  is_going_ = false;
  Auditor& auditor = world_.auditor();
  for (Process* const process : world_.Live()) {
    return auditor.Violate(
        "stays",
        absl::StrCat(process->name(), " has not ended ",
                     absl::FormatDuration(world_.loop().now() - last_told_),
                     " after the last was told to"));
  }
  const absl::Duration took = last_exit_ - last_told_;
  if (took > kMaxStop + 1.5 * world_.schedule().shape.compute) {
    return auditor.Violate(
        "slow stop", absl::StrCat("it took ", absl::FormatDuration(took)));
  }
  const std::vector<int64_t> steps = world_.disk().Steps();
  auditor.Stopped(steps.empty() ? nullptr : world_.disk().Find(steps[0]));
  start_again_();
}

}  // namespace parasol::simulation
