#ifndef PARASOL_DEPLOY_LOCAL_RESTART_POLICY_H_
#define PARASOL_DEPLOY_LOCAL_RESTART_POLICY_H_

#include <deque>

#include "absl/time/time.h"
#include "base/subprocess.h"

namespace parasol {

struct RestartLimits {
  // Number of restarts within `window`; a task that needs more has failed.
  int max_restarts = 20;
  absl::Duration window = absl::Minutes(10);
  // Delay before a restart. It starts at first_delay and doubles, up to
  // max_delay, with each end of the process within `stable_after` of its start.
  absl::Duration first_delay = absl::Milliseconds(100);
  absl::Duration max_delay = absl::Seconds(5);
  absl::Duration stable_after = absl::Seconds(10);
};

// Decides if one task is started again, like Kubeflow's policy ExitCode: it is
// after a signal or an exit code of 128 or more. Exit code 0 is the end; 1 to
// 127 is a failure that a restart would only repeat.
class RestartPolicy {
 public:
  enum class Verdict { kDone, kRestart, kFailed, kTooManyRestarts };
  struct Decision {
    Verdict verdict = Verdict::kDone;
    // Values for kRestart: the time to wait first, and the number of this
    // restart in the window.
    absl::Duration delay = absl::ZeroDuration();
    int restart = 0;
  };

  explicit RestartPolicy(const RestartLimits& limits) : limits_(limits) {}

  void Started(absl::Time now) { started_ = now; }
  Decision Ended(const ProcessEnd& end, absl::Time now);

  const RestartLimits& limits() const { return limits_; }

 private:
  const RestartLimits limits_;
  absl::Time started_ = absl::InfinitePast();
  absl::Duration next_delay_ = absl::ZeroDuration();
  // Times of the restarts within the window, oldest first.
  std::deque<absl::Time> restarts_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_RESTART_POLICY_H_
