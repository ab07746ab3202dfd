#include "base/parallel_calls.h"

#include <utility>

namespace parasol {

ParallelCalls::ParallelCalls(
    size_t count, const std::function<void(size_t number)>& on_thread)
    : results_(count) {
  for (size_t number = 1; number < count; ++number) {
    threads_.emplace_back([this, number, on_thread] {
      on_thread(number);
      Serve(number);
    });
  }
}

ParallelCalls::~ParallelCalls() {
  {
    absl::MutexLock lock(&mu_);
    is_over_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status ParallelCalls::Run(const Call& call) {
  if (!threads_.empty()) {
    absl::MutexLock lock(&mu_);
    call_ = &call;
    ++runs_;
    running_ = threads_.size();
  }
  absl::Status own = call(0);
  if (threads_.empty()) return own;
  absl::MutexLock lock(&mu_);
  const auto have_returned = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return running_ == 0;
  };
  mu_.Await(absl::Condition(&have_returned));
  results_[0] = std::move(own);
  return FirstCause(results_);
}

void ParallelCalls::Serve(size_t number) {
  for (int64_t served = 0;; ++served) {
    const Call* call = nullptr;
    {
      absl::MutexLock lock(&mu_);
      const auto has_call = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return is_over_ || runs_ > served;
      };
      mu_.Await(absl::Condition(&has_call));
      if (is_over_) return;
      call = call_;
    }
    absl::Status result = (*call)(number);
    absl::MutexLock lock(&mu_);
    results_[number] = std::move(result);
    --running_;
  }
}

absl::Status FirstCause(const std::vector<absl::Status>& results) {
  absl::Status cause;
  for (const absl::Status& result : results) {
    if (!result.ok() && !absl::IsCancelled(result)) return result;
    cause.Update(result);
  }
  return cause;
}

}  // namespace parasol
