#ifndef PARASOL_COORDINATOR_STEPS_PROGRESS_WATCH_H_
#define PARASOL_COORDINATOR_STEPS_PROGRESS_WATCH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/time/time.h"

namespace parasol {

// The times since which live workers that hold steps have completed none. Pure.
class ProgressWatch {
 public:
  // Takes a worker's total, and whether it holds steps.
  void Report(uint64_t worker, int64_t completed, bool holds_steps,
              absl::Time now);
  void Forget(uint64_t worker) { since_.erase(worker); }
  // Begins anew with all workers: what they wait for was not theirs to mend.
  void StartOver(absl::Time now);

  // Returns the workers that have held steps for `duration` or longer and
  // completed none, in order.
  std::vector<uint64_t> Still(absl::Duration duration, absl::Time now) const;

 private:
  struct Since {
    int64_t completed = 0;
    absl::Time time;
  };
  std::map<uint64_t, Since> since_;  // workers that hold steps
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_STEPS_PROGRESS_WATCH_H_
