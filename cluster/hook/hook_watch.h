#ifndef PARASOL_CLUSTER_HOOK_HOOK_WATCH_H_
#define PARASOL_CLUSTER_HOOK_HOOK_WATCH_H_

#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "cluster/hook/training_hooks.h"

namespace parasol {

// Asks a chief for the job's status, on a thread of its own, and has hooks told
// of epochs and checkpoints.
class HookWatch {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);
  // Longest time that the end waits for the losses of epochs that have ended,
  // and then for the answer to the last call.
  static constexpr absl::Duration kLastLimit = absl::Seconds(3);

  // Begins to ask. `hooks` and `clock` must outlive this object.
  HookWatch(std::unique_ptr<ChiefClient> chief, TrainingHooks& hooks,
            Clock& clock);
  // Asks until the losses of all epochs are known, for kLastLimit and the
  // deadline of a call at most, and logs it if they are not.
  ~HookWatch();

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<ChiefClient> chief_;
  TrainingHooks& hooks_;
  Clock& clock_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_HOOK_HOOK_WATCH_H_
