#ifndef PARASOL_DEPLOY_REMOTE_LAUNCHER_WATCH_H_
#define PARASOL_DEPLOY_REMOTE_LAUNCHER_WATCH_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace parasol {

// Decides what a guard does with its task, from what it hears of the launcher.
class LauncherWatch {
 public:
  enum class Verdict {
    kRun,
    // The launcher has asked for it: the task is to end in good order.
    kTerminate,
    // The launcher, or the connection to it, is gone.
    kKill,
  };

  explicit LauncherWatch(absl::Time now) : heard_(now) {}

  // Takes what was read from the launcher; nothing read is the end of file.
  void Received(absl::string_view bytes, absl::Time now);
  Verdict VerdictAt(absl::Time now) const;

 private:
  absl::Time heard_;
  bool terminates_ = false;
  bool is_closed_ = false;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_REMOTE_LAUNCHER_WATCH_H_
