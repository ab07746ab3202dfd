#include "base/work_helpers.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/log.h"

namespace parasol {
namespace {

constexpr size_t kMaxThreads = 7;

// The Aside's of this thread; null if there is none, or it was taken.
thread_local const absl::FunctionRef<void()>* aside = nullptr;

}  // namespace

WorkHelpers::Aside::Aside(absl::FunctionRef<void()> work) : work_(work) {
  CHECK(aside == nullptr);
  aside = &work_;
}

WorkHelpers::Aside::~Aside() { aside = nullptr; }

// Lives on the stack of ForEach().
struct WorkHelpers::Job {
  void Work() {
    // The others need not wait for it to begin.
    if (beside != nullptr && !has_begun.exchange(true)) (*beside)();
    for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < parts;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      part(i);
    }
  }

  const size_t parts;
  const absl::FunctionRef<void(size_t)> part;
  std::atomic<size_t> next = 0;
  const absl::FunctionRef<void()>* beside = nullptr;  // an Aside's
  std::atomic<bool> has_begun = false;
  // Guarded by WorkHelpers::mu_: how many more helpers may join, and how many
  // are at work.
  size_t open = 0;
  size_t helpers = 0;
  absl::CondVar left = {};
};

WorkHelpers::WorkHelpers(size_t threads) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

WorkHelpers::~WorkHelpers() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    offered_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

size_t WorkHelpers::ThreadsForServer() {
  cpu_set_t cores;
  const size_t usable = sched_getaffinity(0, sizeof(cores), &cores) == 0
                            ? CPU_COUNT(&cores)
                            : std::thread::hardware_concurrency();
  return std::min(kMaxThreads, std::max<size_t>(usable, 1) - 1);
}

void WorkHelpers::ForEach(size_t parts, absl::FunctionRef<void(size_t)> part) {
  Job job = {.parts = parts, .part = part};
  if (threads_.empty() || parts < 2) return job.Work();
  Offer(job);
  job.Work();
  Withdraw(job);
}

void WorkHelpers::Offer(Job& job) {
  absl::MutexLock lock(&mu_);
  ++callers_;
  const size_t at_work = callers_ + working_;
  const size_t most = threads_.size() + 1;
  if (at_work >= most) return;
  job.open = std::min(most - at_work, job.parts - 1);
  job.beside = std::exchange(aside, nullptr);
  jobs_.push_back(&job);
  for (size_t i = 0; i < job.open; ++i) offered_.Signal();
}

void WorkHelpers::Withdraw(Job& job) {
  absl::MutexLock lock(&mu_);
  --callers_;
  if (job.open > 0) {
    job.open = 0;
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
  }
  while (job.helpers > 0) job.left.Wait(&mu_);
}

void WorkHelpers::Run() {
  mu_.Lock();
  while (true) {
    while (jobs_.empty() && !stopped_) offered_.Wait(&mu_);
    if (stopped_) break;
    Job& job = *jobs_.front();
    if (--job.open == 0) jobs_.pop_front();
    ++job.helpers;
    ++working_;
    mu_.Unlock();
    job.Work();
    mu_.Lock();
    --working_;
    if (--job.helpers == 0) job.left.Signal();
  }
  mu_.Unlock();
}

}  // namespace parasol
