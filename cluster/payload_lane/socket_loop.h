#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_SOCKET_LOOP_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_SOCKET_LOOP_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/descriptor.h"

namespace parasol {

// A thread that waits for sockets (epoll), tasks and times, and serves one at a
// time.
class SocketLoop {
 public:
  using Task = std::function<void()>;

  // The receiver of a socket's events.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Called on the loop's thread: the socket may have become readable or
    // writable, or is broken. Each change is told once (EPOLLET).
    virtual void OnEvents(uint32_t events) = 0;
  };

  SocketLoop();
  // Runs the tasks that were posted, and joins the thread. No socket is watched
  // any more; tasks for later times are dropped.
  ~SocketLoop();
  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  // Runs the task on the loop's thread, after those that were posted before.
  // Never at once: the caller may hold locks. Any thread may call it.
  void Post(Task task) ABSL_LOCKS_EXCLUDED(mu_);

  bool IsThisThread() const {
    return std::this_thread::get_id() == thread_.get_id();
  }

  // The following are called on the loop's thread.

  // Runs the task after `delay`.
  void PostLater(absl::Duration delay, Task task);
  // Tells `handler` of the socket's events until Forget().
  void Watch(int fd, Handler& handler);
  void Forget(int fd, Handler& handler);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void Run();
  // Runs the tasks that are there. Returns true if they have posted others: the
  // sockets are looked at in between.
  bool RunTasks() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns milliseconds until the next time, rounded up; -1: there is none.
  int NextWait() const;

  const Descriptor epoll_;
  const Descriptor wake_;  // an eventfd
  std::multimap<SteadyTime, Task> later_;
  // The handlers of events that were received and are not served yet.
  std::vector<Handler*> ready_;
  bool stopped_ = false;

  absl::Mutex mu_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mu_);
  bool woken_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_SOCKET_LOOP_H_
