#include "chief/step_ledger.h"

#include <algorithm>

namespace parasol {

StepLedger::StepLedger(const durable::CheckpointManifest& manifest)
    : resumed_(true), global_step_(manifest.global_step()) {
  for (const durable::WorkerProgress& progress : manifest.worker_progress()) {
    const int64_t completed = progress.completed_steps();
    accounts_[progress.incarnation()] = {completed, completed, true};
    Remember(progress.incarnation());
  }
}

void StepLedger::Enter(uint64_t incarnation, int64_t completed) {
  auto [it, is_new] = accounts_.try_emplace(incarnation);
  Account& account = it->second;
  if (is_new && !resumed_) account.completed = account.granted = completed;
  account.gone = false;
  Report(incarnation, completed);
}

void StepLedger::Report(uint64_t incarnation, int64_t completed) {
  auto it = accounts_.find(incarnation);
  if (it == accounts_.end()) return;
  Account& account = it->second;
  if (completed <= account.completed) return;
  global_step_ += completed - account.completed;
  account.completed = completed;
  account.granted = std::max(account.granted, completed);
}

int64_t StepLedger::Grant(uint64_t incarnation, int64_t want, int workers) {
  auto it = accounts_.find(incarnation);
  if (it == accounts_.end()) return 0;
  Account& account = it->second;
  if (!end_step_ || account.gone) return account.granted;
  const int64_t left = *end_step_ - global_step_;
  // Half of a fair share at most: the slowest worker holds up the end by that.
  const int64_t may_hold =
      std::max<int64_t>(1, left / (2 * std::max(1, workers)));
  const int64_t holds = account.granted - account.completed;
  const int64_t more = std::min({want, may_hold - holds, left - Outstanding()});
  account.granted += std::max<int64_t>(0, more);
  return account.granted;
}

void StepLedger::Release(uint64_t incarnation) {
  auto it = accounts_.find(incarnation);
  if (it == accounts_.end() || it->second.gone) return;
  it->second.granted = it->second.completed;
  it->second.gone = true;
  Remember(incarnation);
}

std::vector<durable::WorkerProgress> StepLedger::Progress() const {
  std::vector<durable::WorkerProgress> progress;
  for (const auto& [incarnation, account] : accounts_) {
    progress.emplace_back();
    progress.back().set_incarnation(incarnation);
    progress.back().set_completed_steps(account.completed);
  }
  return progress;
}

int64_t StepLedger::Outstanding() const {
  int64_t outstanding = 0;
  for (const auto& [incarnation, account] : accounts_) {
    outstanding += account.granted - account.completed;
  }
  return outstanding;
}

void StepLedger::Remember(uint64_t gone_incarnation) {
  gone_.push_back(gone_incarnation);
  if (gone_.size() <= kMaxGone) return;
  auto it = accounts_.find(gone_.front());
  if (it != accounts_.end() && it->second.gone) accounts_.erase(it);
  gone_.pop_front();
}

}  // namespace parasol
