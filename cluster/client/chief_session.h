#ifndef PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_H_
#define PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/client/chief_client.h"
#include "proto/chief.pb.h"

namespace parasol {

// A task's membership in the cluster: registers, heartbeats on a thread of its
// own, registers again when the chief has restarted, and says when the chief is
// lost for good. The same for ps, worker and evaluator. Thread-safe.
//
// Shutdown: Leave() (good order) or Stop(), then destroy. Both stop and join
// the heartbeat thread; both may be called twice.
class ChiefSession {
 public:
  struct Options {
    wire::Task task;
    std::string metrics_address;
    // The chief does not answer: it is named in the log every 10 s, and after
    // this the session is lost.
    absl::Duration chief_timeout = absl::Minutes(5);
    // Filled into each Register (run_id, completed_steps) and Heartbeat (loss,
    // examples_per_second); may be null. Called from the session's thread.
    std::function<void(wire::RegisterRequest&)> describe;
    std::function<void(wire::HeartbeatRequest&)> report;
  };

  // Blocks until the chief has answered the registration.
  //   Unavailable         chief_timeout passed: names the chief's address.
  //   FailedPrecondition  another process has taken this task's place.
  //   InvalidArgument     the task is not in the chief's cluster.
  //   Cancelled           `cancelled` has become true (it is polled).
  static absl::StatusOr<std::unique_ptr<ChiefSession>> Join(
      std::unique_ptr<ChiefClient> client, Options options, Clock& clock,
      MetricsRegistry& metrics, std::function<bool()> cancelled);
  virtual ~ChiefSession() = default;

  // The answer to the first registration; stays the same when the task has
  // registered again.
  virtual const wire::RegisterResponse& registration() const = 0;
  virtual ChiefClient& chief() = 0;

  // The newest answer to a heartbeat.
  virtual wire::HeartbeatResponse state() const = 0;

  // Blocks until the state satisfies `predicate`, whose waits are logged as
  // "waiting for ps/1, …" every 10 s with the missing tasks.
  //   Unavailable, FailedPrecondition, Cancelled  the session is lost, as for
  //   Join; Cancelled also after Stop().
  //   DeadlineExceeded  `timeout` passed: names the missing tasks.
  virtual absl::Status Await(
      std::function<bool(const wire::HeartbeatResponse&)> predicate,
      absl::Duration timeout) = 0;

  // Runs once, on the session's thread, when the session is lost (also when
  // it was lost before this call). It must not call Leave() or Stop().
  virtual void OnLost(std::function<void(absl::Status)> callback) = 0;

  // Tells the chief that this task ends in good order. Best effort.
  virtual void Leave(int64_t completed_steps) = 0;
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_H_
