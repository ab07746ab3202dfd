#include "coordinator/steps/applied_updates.h"

#include <algorithm>

namespace parasol {
namespace {

// Returns the number of steps that can be completed by now if the newest
// heartbeat says `updates`.
int64_t MostBy(int64_t updates) {
  return updates + std::clamp(updates, AppliedUpdates::kAlwaysAhead,
                              AppliedUpdates::kMostAhead);
}

}  // namespace

void AppliedUpdates::Hear(int ps, uint64_t process, int64_t updates,
                          int64_t completed) {
  // No job makes as many; the sums below must not overflow.
  updates = std::clamp(updates, int64_t{0}, int64_t{1} << 53);
  Ps& known = ps_[ps];
  if (known.process != process || updates < known.newest) {
    // How many it, or the process before it, has applied since is not known.
    known = {.process = process, .newest = updates, .applied = completed};
    return;
  }
  known.applied += updates - known.newest;
  known.newest = updates;
}

bool AppliedUpdates::Explain(int64_t completed) const {
  return ps_.empty() ||
         std::any_of(ps_.begin(), ps_.end(), [completed](const auto& entry) {
           return completed <= MostBy(entry.second.applied);
         });
}

int64_t AppliedUpdates::MostSteps() const {
  int64_t most = ps_.empty() ? INT64_MAX : 0;
  for (const auto& [place, ps] : ps_) most = std::max(most, MostBy(ps.newest));
  return most;
}

}  // namespace parasol
