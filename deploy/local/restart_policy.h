#ifndef PARASOL_DEPLOY_LOCAL_RESTART_POLICY_H_
#define PARASOL_DEPLOY_LOCAL_RESTART_POLICY_H_

#include <deque>

#include "absl/time/time.h"
#include "base/subprocess.h"

namespace parasol {

struct RestartLimits {
  // A task that needs more restarts than this within the window has failed.
  int max_restarts = 20;
  absl::Duration window = absl::Minutes(10);
  // The pause before a restart doubles with each death that follows its start
  // by less than `stable_after`.
  absl::Duration first_delay = absl::Milliseconds(100);
  absl::Duration max_delay = absl::Seconds(5);
  absl::Duration stable_after = absl::Seconds(10);
};

// When one task is started again, as Kubeflow's policy ExitCode has it: after
// a signal or an exit code of 128 or more. Exit 0 is the end, 1 to 127 a
// failure that a restart would only repeat.
class RestartPolicy {
 public:
  enum class Verdict { kDone, kRestart, kFailed, kTooManyRestarts };
  struct Decision {
    Verdict verdict = Verdict::kDone;
    // kRestart: how long to wait first, and which restart of the window it is.
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
