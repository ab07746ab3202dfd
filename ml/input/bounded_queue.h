#ifndef PARASOL_ML_INPUT_BOUNDED_QUEUE_H_
#define PARASOL_ML_INPUT_BOUNDED_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"

namespace parasol {

// First in, first out, between threads. A wait ends with an element, with room,
// or with Close(), which whoever joins the other side's thread calls first.
//
// Thread-safe. std::mutex, not absl::Mutex: ThreadSanitizer does not see into
// Debian's Abseil.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits for room. False, and nothing is kept, once the queue is closed.
  bool Push(T element) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock,
                  [this] { return closed_ || elements_.size() < capacity_; });
    if (closed_) return false;
    elements_.push_back(std::move(element));
    changed_.notify_all();
    return true;
  }

  // Waits for an element. nullopt: the queue is closed and empty.
  std::optional<T> Pop() {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [this] { return closed_ || !elements_.empty(); });
    if (elements_.empty()) return std::nullopt;
    std::optional<T> element = std::move(elements_.front());
    elements_.pop_front();
    changed_.notify_all();
    return element;
  }

  // Nothing more comes in. May be called twice.
  void Close() {
    std::lock_guard<std::mutex> lock(mu_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<T> elements_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_BOUNDED_QUEUE_H_
