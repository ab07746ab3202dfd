#ifndef PARASOL_SERVING_BATCH_QUEUE_H_
#define PARASOL_SERVING_BATCH_QUEUE_H_

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace parasol {

struct BatchLimits {
  // Number of examples of a batch; a larger request is a batch of its own.
  int64_t max_batch = 64;
  // Time for which a batch that is not full waits for more requests.
  absl::Duration max_wait = absl::ZeroDuration();
  // Number of examples that may wait.
  int64_t max_queued = 4096;
};

// Requests that wait for the model, in the order of their arrival, and how they
// are joined into batches. Time is an argument. Not thread-safe.
template <typename Request>
class BatchQueue {
 public:
  explicit BatchQueue(const BatchLimits& limits) : limits_(limits) {}

  // Takes a request of `examples` examples. Returns false, and leaves `request`
  // alone, if too many examples wait. An empty queue takes any request.
  bool Offer(Request& request, int64_t examples, absl::Time now,
             absl::Time deadline) {
    if (!waiting_.empty() && queued_ + examples > limits_.max_queued) {
      return false;
    }
    waiting_.push_back({std::move(request), examples, now, deadline});
    queued_ += examples;
    return true;
  }

  // Returns when the next batch is due: InfinitePast if it is full, or if a
  // request has no time to wait for company; InfiniteFuture if nothing waits.
  absl::Time Due() const {
    if (waiting_.empty()) return absl::InfiniteFuture();
    if (queued_ >= limits_.max_batch) return absl::InfinitePast();
    const absl::Time due = waiting_.front().arrived + limits_.max_wait;
    for (const Entry& entry : waiting_) {
      if (entry.deadline <= due) return absl::InfinitePast();
    }
    return due;
  }

  struct Taken {
    std::vector<Request> batch;
    std::vector<Request> expired;  // requests whose deadlines are over
  };

  // Takes the next batch off the queue, whether it is due or not.
  Taken Take(absl::Time now) {
    Taken taken;
    int64_t examples = 0;
    while (!waiting_.empty()) {
      Entry& next = waiting_.front();
      const bool is_expired = next.deadline <= now;
      if (!is_expired && examples > 0 &&
          examples + next.examples > limits_.max_batch) {
        break;
      }
      if (!is_expired) examples += next.examples;
      queued_ -= next.examples;
      (is_expired ? taken.expired : taken.batch)
          .push_back(std::move(next.request));
      waiting_.pop_front();
    }
    return taken;
  }

  bool empty() const { return waiting_.empty(); }
  // Number of examples that wait.
  int64_t queued() const { return queued_; }

 private:
  struct Entry {
    Request request;
    int64_t examples;
    absl::Time arrived;
    absl::Time deadline;
  };

  const BatchLimits limits_;
  std::deque<Entry> waiting_;
  int64_t queued_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_SERVING_BATCH_QUEUE_H_
