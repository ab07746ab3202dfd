#include "tests/simulation/group/process_threads.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace parasol::simulation {

thread_local ProcessThreads::Mark ProcessThreads::mark_;

ProcessThreads::Mark::~Mark() {
  if (threads != nullptr) threads->HasEnded();
}

void ThreadTurns::RunReady() {
  bool have_run = true;
  while (have_run) {
    have_run = false;
    for (size_t i = 0; i < processes_.size(); ++i) {
      ProcessThreads& threads = *processes_[i];
      const Process& process = threads.process_;
      if (!process.alive() || process.stopped()) continue;
      if (!threads.RunReady()) continue;
      have_run = true;
      threads.on_ran_();
    }
  }
}

ProcessThreads::ProcessThreads(World& world, Process& process,
                               ThreadTurns& turns, std::function<void()> on_ran)
    : world_(world),
      process_(process),
      turns_(turns),
      on_ran_(std::move(on_ran)) {
  turns_.processes_.push_back(this);
}

ProcessThreads::~ProcessThreads() { std::erase(turns_.processes_, this); }

absl::Time ProcessThreads::Now() { return world_.Now(process_) + passed_; }

void ProcessThreads::Start(absl::FunctionRef<void()> begin) {
  {
    absl::MutexLock lock(&turns_.mu_);
    ++turns_.running_;
  }
  begin();
  absl::MutexLock lock(&turns_.mu_);
  while (turns_.running_ > 0) turns_.idle_.Wait(&turns_.mu_);
}

void ProcessThreads::Enter() { mark_.threads = this; }

void ProcessThreads::HasEnded() {
  absl::MutexLock lock(&turns_.mu_);
  --turns_.running_;
  turns_.idle_.Signal();
}

bool ProcessThreads::AwaitWithTimeout(
    absl::Mutex& mu, const absl::Condition& condition,
    absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  if (std::this_thread::get_id() == turns_.simulation_) {
    return LetTimePass(mu, condition, timeout);
  }
  Enter();
  Wait wait{.mu = &mu, .condition = &condition, .number = ++turns_.waits_};
  if (!is_abandoned_ && timeout < absl::InfiniteDuration()) {
    world_.After(process_, timeout,
                 [this, number = wait.number] { Expire(number); });
  }
  mu.Unlock();
  {
    absl::MutexLock lock(&turns_.mu_);
    parked_.push_back(&wait);
    --turns_.running_;
    turns_.idle_.Signal();
    while (!wait.has_turn) wait.turn.Wait(&turns_.mu_);
  }
  mu.Lock();
  return condition.Eval();
}

bool ProcessThreads::Await(std::function<bool()> condition,
                           absl::Duration timeout) {
  absl::Mutex mu;
  absl::MutexLock lock(&mu);
  return AwaitWithTimeout(mu, absl::Condition(&condition), timeout);
}

void ProcessThreads::Expire(int64_t number) {
  for (Wait* const wait : parked_) {
    if (wait->number == number) wait->has_expired = true;
  }
}

bool ProcessThreads::IsReady(Wait& wait) const {
  if (wait.has_expired) return true;
  absl::MutexLock lock(wait.mu);
  return wait.condition->Eval();
}

void ProcessThreads::Resume(Wait* wait) {
  std::erase(parked_, wait);
  absl::MutexLock lock(&turns_.mu_);
  ++turns_.running_;
  wait->has_turn = true;
  wait->turn.Signal();
  while (turns_.running_ > 0) turns_.idle_.Wait(&turns_.mu_);
}

bool ProcessThreads::RunReady() {
  bool have_run = false;
  const std::vector<Wait*> waits = parked_;
  for (Wait* const wait : waits) {
    if (!IsReady(*wait)) continue;
    have_run = true;
    Resume(wait);
  }
  return have_run;
}

void ProcessThreads::Drain() {
  CHECK(is_abandoned_);
  while (!parked_.empty()) {
    parked_.front()->has_expired = true;
    Resume(parked_.front());
  }
}

bool ProcessThreads::LetTimePass(
    absl::Mutex& mu, const absl::Condition& condition,
    absl::Duration timeout) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  CHECK(is_abandoned_) << process_.name() << ": the simulation would block";
  passed_ += timeout;
  mu.Unlock();
  if (!RunReady()) {
    const std::vector<Wait*> waits = parked_;
    for (Wait* const wait : waits) {
      wait->has_expired = true;
      Resume(wait);
    }
  }
  mu.Lock();
  return condition.Eval();
}

}  // namespace parasol::simulation
