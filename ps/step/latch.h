#ifndef PARASOL_PS_STEP_LATCH_H_
#define PARASOL_PS_STEP_LATCH_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace parasol {

// Counts down the places (chunks and sparse tables) that an operation waits
// for, and calls back once, when the last place is counted. Thread-safe.
class Latch {
 public:
  struct Outcome {
    // The first failure, or OK.
    absl::Status status = absl::OkStatus();
    // True if a gradient of the operation was dropped while it waited.
    bool dropped = false;
  };
  using Callback = std::function<void(const Outcome&)>;

  // `count` is the number of places, at least 1.
  Latch(size_t count, Callback done);

  // Marks the outcome as dropped. Call it before the CountDown() of the same
  // place.
  void MarkDropped() { dropped_ = true; }
  void Fail(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);

  // Counts one place. The last CountDown() runs the callback on this thread:
  // hold no lock.
  void CountDown() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const Callback done_;
  std::atomic<size_t> left_;
  std::atomic<bool> dropped_ = false;
  absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

// The latches that a place has let go while its lock was held. The destructor
// counts each of them down: declare it before the lock is taken.
class Released {
 public:
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released();

  void Add(std::shared_ptr<Latch> latch) {
    latches_.push_back(std::move(latch));
  }

 private:
  std::vector<std::shared_ptr<Latch>> latches_;
};

}  // namespace parasol

#endif  // PARASOL_PS_STEP_LATCH_H_
