#ifndef PARASOL_BASE_WORK_HELPERS_H_
#define PARASOL_BASE_WORK_HELPERS_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// Threads that take parts of a caller's work while they have nothing else to
// do. A caller never waits for a helper to begin: it does what no helper has
// taken. Thread-safe.
class WorkHelpers {
 public:
  // Starts `threads` threads; with 0, callers do all their work themselves.
  explicit WorkHelpers(size_t threads);
  // Requires that no ForEach() is under way.
  ~WorkHelpers();
  WorkHelpers(const WorkHelpers&) = delete;
  WorkHelpers& operator=(const WorkHelpers&) = delete;

  // Work that the next ForEach() on this thread does beside its parts, if
  // helpers are asked: once, on any thread, while the caller waits for nothing
  // else. Not done at all if there is no such ForEach() while the object lives.
  class Aside {
   public:
    // Requires that the thread has no other Aside. `work` may do what a part
    // may.
    explicit Aside(absl::FunctionRef<void()> work);
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    const absl::FunctionRef<void()> work_;
  };

  // Returns the number of threads for a process whose own threads serve
  // requests: one less than the cores it may use, 7 at most.
  static size_t ThreadsForServer();

  // Calls part(i) once for each i in [0, parts), in any order, on this thread
  // and on helpers. Returns when all calls have returned. `part` may wait only
  // for locks that nobody holds while waiting for ForEach(), and must not call
  // ForEach() itself. Helpers are asked only while fewer callers and helpers
  // are at work than there are helpers, and one more.
  void ForEach(size_t parts, absl::FunctionRef<void(size_t)> part)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Job;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Lets helpers join the job, as many as may. Gives it the caller's aside if
  // any may.
  void Offer(Job& job) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns when no helper is at work on the job, and none will be.
  void Withdraw(Job& job) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  absl::CondVar offered_;
  // Jobs that more helpers may join, the oldest first.
  std::deque<Job*> jobs_ ABSL_GUARDED_BY(mu_);
  // Number of threads in ForEach(), and of helpers that are at work.
  size_t callers_ ABSL_GUARDED_BY(mu_) = 0;
  size_t working_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace parasol

#endif  // PARASOL_BASE_WORK_HELPERS_H_
