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
#include "cluster/inspection/task_inspection.h"
#include "proto/chief.pb.h"

namespace parasol {

// A task's membership in the cluster, the same for ps, worker and evaluator. It
// registers, sends heartbeats on a thread of its own, registers again when the
// chief has restarted, and reports when the chief is lost for good. It presents
// the place epoch that it was given, also to another chief. An answer of a
// chief that has been replaced by a newer one counts as none. It names in the
// log, every 10 s, what the job waits for.
//
// A chief that is gone for good may have completed the job while this task
// stood still. So a chief that does not answer is the end of the job, in phase
// COMPLETE, if the job's last checkpoint is in the checkpoint directory. A task
// that has never heard of a chief, and knows the directory, looks there as well
// after kUnheardLimit: the job of the checkpoint is its registration then.
// Thread-safe.
//
// Shutdown: Leave() (good order) or Stop(), then destroy the session. Both stop
// and join the heartbeat thread; both may be called twice.
class ChiefSession {
 public:
  // Time after which a task that has never had an answer of a chief looks for
  // the end of the job: longer than a chief takes to start.
  static constexpr absl::Duration kUnheardLimit = absl::Seconds(30);

  struct Options {
    wire::Task task;
    std::string metrics_address;
    // Time after which a chief that does not answer is given up: the session is
    // lost. Until then the log names the chief every 10 s.
    absl::Duration chief_timeout = absl::Minutes(5);
    // Directory in which to look for the job's last checkpoint when the chief
    // does not answer. Empty: the one that the chief names.
    std::string checkpoint_directory;
    // True if another session of this process says in the log what the job
    // waits for.
    bool is_quiet = false;
    // The task's part in inspections; null: it shows its threads' stacks alone.
    // Used on the session's thread, but for its recorder.
    std::shared_ptr<TaskInspection> inspection = nullptr;
    // Functions that fill in each Register (run_id, layout, completed_steps)
    // and each Heartbeat (loss, examples_per_second, or what a ps holds); may
    // be null. Called on the session's thread, as is `on_registered`.
    std::function<void(wire::RegisterRequest&)> describe;
    std::function<void(wire::HeartbeatRequest&)> report;
    // Called with every answer to a registration, also to Join()'s, and with
    // the first one. An error ends the session. May be null.
    std::function<absl::Status(const wire::RegisterResponse& first,
                               const wire::RegisterResponse& answer)>
        on_registered;
  };

  // Blocks until the chief has answered the registration.
  //   Unavailable         chief_timeout passed; the message names the chief's
  //                       address.
  //   FailedPrecondition  another process has taken this task's place.
  //   Unavailable         another ps acts for this task, which was lost for a
  //                       while: start the process again.
  //   InvalidArgument     the task is not in the chief's cluster.
  //   any other           `on_registered` returned it.
  //   Cancelled           `cancelled` returned true; it is polled.
  static absl::StatusOr<std::unique_ptr<ChiefSession>> Join(
      std::unique_ptr<ChiefClient> client, Options options, Clock& clock,
      MetricsRegistry& metrics, std::function<bool()> cancelled);
  virtual ~ChiefSession() = default;

  // The answer to the first registration; does not change when the task
  // registers again.
  virtual const wire::RegisterResponse& registration() const = 0;
  virtual ChiefClient& chief() = 0;

  // The newest answer to a heartbeat.
  virtual wire::HeartbeatResponse state() const = 0;
  // Number of answers to heartbeats so far.
  virtual int64_t answers() const = 0;

  // Blocks until the state satisfies `predicate`. A chief that answers and
  // misses no task is waited for without a limit: loading and saving take as
  // long as they take. Looks at `cancelled`, unless it is null, also while the
  // chief is away.
  //   Unavailable, FailedPrecondition, Cancelled  the session is lost, as for
  //   Join; Cancelled also after Stop(), and when `cancelled` is true.
  //   DeadlineExceeded  the chief has missed tasks for `missing_limit`; the
  //                     message names them.
  virtual absl::Status Await(
      std::function<bool(const wire::HeartbeatResponse&)> predicate,
      absl::Duration missing_limit, const std::function<bool()>& cancelled) = 0;
  absl::Status Await(
      std::function<bool(const wire::HeartbeatResponse&)> predicate,
      absl::Duration missing_limit) {
    return Await(std::move(predicate), missing_limit, nullptr);
  }

  // Tells the chief from now on that this task, a ps, is leaving and has
  // updates that no checkpoint has. Blocks until it may leave, the job has
  // ended, or `is_saved` returns true, which is asked now and then: a chief
  // that has ended with its last checkpoint says so no more.
  //   Unavailable       the chief has not answered for `silence_limit`, not
  //                     even after this call.
  //   DeadlineExceeded  `limit` passed.
  //   any other         as for Await().
  virtual absl::Status AwaitLeave(absl::Duration limit,
                                  absl::Duration silence_limit,
                                  const std::function<bool()>& is_saved) = 0;

  // Sets a callback that runs once, on the session's thread, when the session
  // is lost (also if it was lost before this call). The callback must not call
  // Leave() or Stop().
  virtual void OnLost(std::function<void(absl::Status)> callback) = 0;

  // Tells the chief that this task ends in good order. Best effort.
  virtual void Leave(int64_t completed_steps) = 0;
  virtual void Stop() = 0;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_CHIEF_SESSION_H_
