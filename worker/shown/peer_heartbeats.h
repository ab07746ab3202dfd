#ifndef PARASOL_WORKER_SHOWN_PEER_HEARTBEATS_H_
#define PARASOL_WORKER_SHOWN_PEER_HEARTBEATS_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "cluster/client/chief_client.h"
#include "cluster/inspection/task_inspection.h"
#include "proto/chief.pb.h"

namespace parasol {

// The heartbeats of a program's process to the first one, which shows to those
// who look on what they bring. Nothing depends on them: one that is not
// answered is followed by the next one, and by a warning if that goes on, or if
// it is refused. A thread of its own sends them; the rest is thread-safe.
class PeerHeartbeats {
 public:
  static constexpr absl::Duration kInterval = absl::Seconds(1);
  // Time between two while there is more to show.
  static constexpr absl::Duration kNext = absl::Milliseconds(100);

  // `task`: this process, with its incarnation. `clock` must outlive this
  // object.
  PeerHeartbeats(wire::Task task, std::unique_ptr<ChiefClient> first,
                 Clock& clock);
  ~PeerHeartbeats();

  // Records what the process does, while a trace is asked for.
  TraceRecorder& recorder() { return inspection_.recorder(); }
  // Has the stack of the calling thread shown first.
  void ShowThisThreadFirst() { inspection_.ShowThisThreadFirst(); }
  // Has this called for each heartbeat, which it adds to; null: nothing. What
  // it replaces is not called any more when this returns.
  using Report = std::function<void(wire::HeartbeatRequest& request)>;
  void Follow(Report report) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Beat() ABSL_LOCKS_EXCLUDED(mu_);

  const wire::Task task_;
  const std::unique_ptr<ChiefClient> first_;
  Clock& clock_;
  TaskInspection inspection_;  // the thread's, but for its recorder
  // The thread's: when the first process has answered last, or this began.
  absl::Time answered_;
  absl::Mutex mu_;
  Report report_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_SHOWN_PEER_HEARTBEATS_H_
