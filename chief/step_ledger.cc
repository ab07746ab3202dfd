#include "chief/step_ledger.h"

#include <algorithm>

namespace parasol {

StepLedger::StepLedger(const durable::CheckpointManifest& manifest,
                       std::optional<int64_t> bound)
    : bound_(bound), resumed_(true), global_step_(manifest.global_step()) {
  std::optional<int64_t> smallest;
  for (const durable::WorkerProgress& progress : manifest.worker_progress()) {
    const int64_t completed = progress.completed_steps();
    Account& account = accounts_[progress.incarnation()];
    account.completed = account.granted = completed;
    account.gone = true;
    if (progress.has_clock()) {
      account.lead = progress.clock() - completed;
      smallest =
          std::min(smallest.value_or(progress.clock()), progress.clock());
    }
    Remember(progress.incarnation());
  }
  last_smallest_clock_ = smallest.value_or(0);
}

void StepLedger::Enter(uint64_t worker, int64_t completed) {
  const int64_t smallest = SmallestClock();
  auto [it, is_new] = accounts_.try_emplace(worker);
  Account& account = it->second;
  const bool comes = is_new || account.gone;
  if (is_new && !resumed_) account.completed = account.granted = completed;
  account.gone = false;
  Report(worker, completed);
  if (!comes) return;
  // What it had done already is no reason to hold it up.
  if (is_new) account.lead = smallest - account.completed;
  // After a restart of the chief the others may be yet to come.
  if (!has_granted_) {
    account.is_newcomer = is_new && resumed_;
    return;
  }
  account.lead = std::max(account.lead, smallest - account.completed);
}

void StepLedger::Report(uint64_t worker, int64_t completed) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end()) return;
  Account& account = it->second;
  if (completed <= account.completed) return;
  global_step_ += completed - account.completed;
  account.completed = completed;
  account.granted = std::max(account.granted, completed);
}

void StepLedger::Answer(uint64_t worker, int64_t want, int workers,
                        wire::ClaimStepsResponse& response) {
  response.set_granted_steps(Grant(worker, want, workers));
}

int64_t StepLedger::Grant(uint64_t worker, int64_t want, int workers) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end()) return 0;
  Account& account = it->second;
  if (!end_step_ || account.gone) return account.granted;
  if (!has_granted_ && want > 0) RaiseNewcomers();
  const int64_t left = *end_step_ - global_step_;
  // Half of a fair share at most: the slowest worker holds up the end by that.
  const int64_t may_hold =
      std::max<int64_t>(1, left / (2 * std::max(1, workers)));
  const int64_t holds = account.granted - account.completed;
  int64_t more = std::min({want, may_hold - holds, left - Outstanding()});
  if (bound_) {
    const int64_t limit = SmallestClock() + *bound_ + 1;
    more = std::min(more, limit - (account.granted + account.lead));
  }
  if (more > 0) {
    account.granted += more;
    has_granted_ = true;
  }
  return account.granted;
}

void StepLedger::Release(uint64_t worker) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end() || it->second.gone) return;
  last_smallest_clock_ = SmallestClock();
  it->second.granted = it->second.completed;
  it->second.gone = true;
  Remember(worker);
}

std::vector<durable::WorkerProgress> StepLedger::Progress() const {
  std::vector<durable::WorkerProgress> progress;
  for (const auto& [incarnation, account] : accounts_) {
    durable::WorkerProgress& entry = progress.emplace_back();
    entry.set_incarnation(incarnation);
    entry.set_completed_steps(account.completed);
    if (bound_ && !account.gone) entry.set_clock(account.clock());
  }
  return progress;
}

std::vector<uint64_t> StepLedger::Awaited() const {
  std::vector<uint64_t> slowest;
  if (!bound_) return slowest;
  const int64_t smallest = SmallestClock();
  bool holds_up = false;
  for (const auto& [incarnation, account] : accounts_) {
    if (account.gone) continue;
    if (account.clock() == smallest) slowest.push_back(incarnation);
    holds_up |= account.clock() > smallest + *bound_;
  }
  if (!holds_up) slowest.clear();
  return slowest;
}

int64_t StepLedger::Outstanding() const {
  int64_t outstanding = 0;
  for (const auto& [incarnation, account] : accounts_) {
    outstanding += account.granted - account.completed;
  }
  return outstanding;
}

int64_t StepLedger::SmallestClock() const {
  std::optional<int64_t> smallest;
  for (const auto& [incarnation, account] : accounts_) {
    if (account.gone) continue;
    smallest = std::min(smallest.value_or(account.clock()), account.clock());
  }
  return smallest.value_or(last_smallest_clock_);
}

void StepLedger::RaiseNewcomers() {
  std::optional<int64_t> smallest;
  for (const auto& [incarnation, account] : accounts_) {
    if (account.gone || account.is_newcomer) continue;
    smallest = std::min(smallest.value_or(account.clock()), account.clock());
  }
  for (auto& [incarnation, account] : accounts_) {
    if (!account.is_newcomer || account.gone || !smallest) continue;
    account.lead = std::max(account.lead, *smallest - account.completed);
  }
}

void StepLedger::Remember(uint64_t gone_incarnation) {
  gone_.push_back(gone_incarnation);
  if (gone_.size() <= kMaxGone) return;
  auto it = accounts_.find(gone_.front());
  if (it != accounts_.end() && it->second.gone) accounts_.erase(it);
  gone_.pop_front();
}

}  // namespace parasol
