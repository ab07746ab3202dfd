#include "chief/step_ledger.h"

#include <algorithm>

namespace parasol {
namespace {

// Largest number of steps in one report that this chief has not granted: a
// count is a message from outside, and each of its steps takes a batch.
constexpr int64_t kMaxUnknownSteps = 1 << 24;

// Number of batches that a worker is told beyond its granted steps, so that it
// decodes them ahead.
constexpr int64_t kBatchesAhead = 4;

}  // namespace

StepLedger::StepLedger(const durable::CheckpointManifest& manifest,
                       std::optional<int64_t> bound)
    : bound_(bound),
      resumed_(true),
      global_step_(manifest.global_step()),
      pool_(manifest.global_step()) {
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
  global_step_ += CompleteBatches(account, completed - account.completed);
  account.completed = completed;
  account.granted = std::max(account.granted, completed);
}

void StepLedger::Answer(uint64_t worker, int64_t want, int workers,
                        wire::ClaimStepsResponse& response) {
  response.set_granted_steps(Grant(worker, want, workers));
  auto it = accounts_.find(worker);
  if (it == accounts_.end()) return;
  response.set_steps_before_batches(it->second.completed);
  wire::BatchRange* range = nullptr;
  for (const int64_t batch : it->second.batches) {
    if (range == nullptr || range->first() + range->count() != batch) {
      range = response.add_batch();
      range->set_first(batch);
    }
    range->set_count(range->count() + 1);
  }
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
    FillBatches(account);
  }
  return account.granted;
}

void StepLedger::SetShardOf(uint64_t worker, int shard) {
  auto it = accounts_.find(worker);
  if (it != accounts_.end()) it->second.shard = shard;
}

std::vector<int64_t> StepLedger::BatchesOf(uint64_t worker) const {
  const Account& account = accounts_.at(worker);
  return {account.batches.begin(), account.batches.end()};
}

int64_t StepLedger::CompleteBatches(Account& account, int64_t steps) {
  const auto known = static_cast<int64_t>(account.batches.size() +
                                          account.lost_batches.size());
  steps = std::min(steps, known + kMaxUnknownSteps);
  int64_t credited = 0;
  for (; steps > 0; --steps) {
    if (!account.batches.empty()) {
      account.batches.pop_front();
      ++credited;
    } else if (!account.lost_batches.empty()) {
      credited += pool_.Remove(account.lost_batches.front());
      account.lost_batches.pop_front();
    } else {
      // An earlier chief has granted it: any one is taken as this one.
      pool_.Take(account.shard);
      ++credited;
    }
  }
  return credited;
}

void StepLedger::FillBatches(Account& account) {
  account.lost_batches.clear();
  int64_t assigned = global_step_;
  for (const auto& [incarnation, other] : accounts_) {
    assigned += static_cast<int64_t>(other.batches.size());
  }
  const int64_t unfinished = account.unfinished();
  auto size = static_cast<int64_t>(account.batches.size());
  for (; size < unfinished + kBatchesAhead; ++size) {
    if (assigned++ < *end_step_) {
      account.batches.push_back(pool_.Take(account.shard));
    } else if (size < unfinished) {
      account.batches.push_back(TakeBackBatch());
    } else {
      return;
    }
  }
}

int64_t StepLedger::TakeBackBatch() {
  Account* from = nullptr;
  for (auto& [incarnation, account] : accounts_) {
    const auto size = static_cast<int64_t>(account.batches.size());
    if (size > account.unfinished()) from = &account;
  }
  if (from == nullptr) return pool_.Take(0);
  const int64_t batch = from->batches.back();
  from->batches.pop_back();
  return batch;
}

void StepLedger::Release(uint64_t worker) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end() || it->second.gone) return;
  last_smallest_clock_ = SmallestClock();
  Account& account = it->second;
  // Lost twice without a grant between, it has no batches: those that it lost
  // before stay known.
  for (const int64_t batch : account.batches) {
    pool_.Return(batch);
    const auto lost = static_cast<int64_t>(account.lost_batches.size());
    if (lost < account.unfinished()) account.lost_batches.push_back(batch);
  }
  account.batches.clear();
  account.granted = account.completed;
  account.gone = true;
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
