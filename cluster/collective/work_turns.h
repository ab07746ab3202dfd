#ifndef PARASOL_CLUSTER_COLLECTIVE_WORK_TURNS_H_
#define PARASOL_CLUSTER_COLLECTIVE_WORK_TURNS_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace parasol {

// Turns at work that one thread at a time does: the threads that wait for its
// end do it themselves; a thread of this object does it otherwise. A caller
// that begins work and then waits for it pays for no other thread: the object's
// thread looks kPatience after work has begun. Thread-safe.
class WorkTurns {
 public:
  // Time that work which nobody waits for may lie, and time between two looks
  // when there is none.
  static constexpr absl::Duration kPatience = absl::Milliseconds(1);
  static constexpr absl::Duration kIdle = absl::Milliseconds(50);

  struct Worker {
    // Does what can be done; blocks for `limit` at most if that is nothing.
    std::function<void(absl::Duration limit)> work;
    // Makes a call of work() that blocks return. Called by any thread.
    std::function<void()> interrupt;
    // Returns true if work was begun that has not ended.
    std::function<bool()> has_work;
  };

  explicit WorkTurns(Worker worker);
  ~WorkTurns() { Stop(); }
  WorkTurns(const WorkTurns&) = delete;
  WorkTurns& operator=(const WorkTurns&) = delete;

  // Notes that work was begun.
  void NoteBegun() ABSL_LOCKS_EXCLUDED(mu_);
  // Takes part in the work until has_work() is false.
  void WorkToEnd() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the thread. work() is not called later, but by WorkToEnd().
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !stopped_ && waiting_ == 0 && !is_taken_;
  }
  // Calls work() on this thread, without the lock.
  void TakeTurn(absl::Duration limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Worker worker_;
  absl::Mutex mu_;
  bool is_taken_ ABSL_GUARDED_BY(mu_) = false;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  // Work was begun since the thread last looked; the thread looks soon.
  bool has_begun_ ABSL_GUARDED_BY(mu_) = false;
  bool looks_soon_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_WORK_TURNS_H_
