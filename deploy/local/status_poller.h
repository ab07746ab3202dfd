#ifndef PARASOL_DEPLOY_LOCAL_STATUS_POLLER_H_
#define PARASOL_DEPLOY_LOCAL_STATUS_POLLER_H_

#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// Asks the chief for the job's status all the time, on a thread of its own: a
// chief that has died must not keep the launcher from starting it again.
// The destructor waits for a call that runs. Thread-safe.
class StatusPoller {
 public:
  // `chief` has a deadline for its calls; `clock` outlives this.
  StatusPoller(std::unique_ptr<ChiefClient> chief, absl::Duration period,
               Clock& clock);
  ~StatusPoller();

  // The last answer, also when later calls failed; nullopt before the first.
  std::optional<wire::JobStatus> latest() const;

 private:
  void Run();

  const std::unique_ptr<ChiefClient> chief_;
  const absl::Duration period_;
  Clock& clock_;
  mutable absl::Mutex mu_;
  std::optional<wire::JobStatus> latest_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_DEPLOY_LOCAL_STATUS_POLLER_H_
