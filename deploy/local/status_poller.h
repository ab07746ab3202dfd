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

// Asks the chief for the job's status again and again, on a thread of its own,
// so that a call to a chief that has died does not keep the launcher from
// restarting it. The destructor waits for the current call. Thread-safe.
class StatusPoller {
 public:
  // `chief` must have a deadline for its calls; `clock` must outlive this
  // object.
  StatusPoller(std::unique_ptr<ChiefClient> chief, absl::Duration period,
               Clock& clock);
  ~StatusPoller();

  // Returns the last answer, even if later calls failed; nullopt before the
  // first answer.
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
