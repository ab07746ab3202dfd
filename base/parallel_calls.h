#ifndef PARASOL_BASE_PARALLEL_CALLS_H_
#define PARASOL_BASE_PARALLEL_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// Calls of one function with the numbers 0 to n - 1 at the same time, again and
// again, each number always on the same thread: number 0 on the caller's, and
// the others on threads of this object. For work of some 100 µs and more.
// Used by one thread.
class ParallelCalls {
 public:
  using Call = std::function<absl::Status(size_t number)>;

  // Calls `on_thread` first on each thread of this object, with its number.
  explicit ParallelCalls(
      size_t count,
      const std::function<void(size_t number)>& on_thread = [](size_t) {});
  // Joins the threads.
  ~ParallelCalls();

  ParallelCalls(const ParallelCalls&) = delete;
  ParallelCalls& operator=(const ParallelCalls&) = delete;

  // Returns when all calls have returned, with FirstCause() of their results. A
  // call that fails ends no other.
  absl::Status Run(const Call& call) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Serve(size_t number) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  const Call* call_ ABSL_GUARDED_BY(mu_) = nullptr;
  int64_t runs_ ABSL_GUARDED_BY(mu_) = 0;    // all that were begun
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;  // calls of this object's threads
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::Status> results_ ABSL_GUARDED_BY(mu_);  // index: number
  std::vector<std::thread> threads_;
};

// Returns the first error that is the cause of others, if there is one: one
// that fails cancels others' waits.
absl::Status FirstCause(const std::vector<absl::Status>& results);

}  // namespace parasol

#endif  // PARASOL_BASE_PARALLEL_CALLS_H_
