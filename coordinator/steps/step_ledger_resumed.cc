// The part of the ledger that has to do with steps of another chief's grants.
#include <algorithm>
#include <cstdint>

#include "coordinator/steps/step_ledger.h"

namespace parasol {

int64_t StepLedger::MayBeUncounted() const {
  if (!end_step_) return kMaxTotal;
  return std::clamp<int64_t>(LastEnd() - global_step_, 0, kMaxTotal) +
         kMaxUnfinished;
}

int64_t StepLedger::LimitOfStranger(uint64_t worker) const {
  const DepartedWorkers::Worker* known = departed_.Find(worker);
  if (known != nullptr && known->limit) return *known->limit;
  if (known == nullptr && !CountsUnknownSteps()) return kMaxTotal;
  const int64_t done = known == nullptr ? 0 : known->completed;
  return std::min(kMaxTotal, done + MayBeUncounted());
}

void StepLedger::CompleteUnknown(Account& account, int64_t steps) {
  if (!account.counts_unknown || steps <= 0) return;
  if (account.uncounted == 0) {
    account.uncounted_begin = account.completed - steps;
  }
  account.uncounted += steps;
  CountUncounted(account);
}

ToldBatches::Run StepLedger::ToldFrom(const Account& account,
                                      int64_t step) const {
  ToldBatches::Run run = account.told.From(step);
  // No chief grants batches far behind the end, but of a shard's epoch.
  if (run.first && !options_.has_shards &&
      *run.first + run.count > LastEnd() + kMaxUnfinished) {
    run.first.reset();
  }
  return run;
}

void StepLedger::CountUncounted(Account& account) {
  if (account.uncounted == 0 || !end_step_ ||
      account.uncounted > MayBeUncounted()) {
    return;
  }
  const int64_t begin = account.uncounted_begin;
  const int64_t end = begin + account.uncounted;
  const ToldBatches::Run first = account.told.From(begin);
  const bool is_told = first.first || first.count < account.uncounted;
  // Which batches are whose shard's decides where the others are taken from.
  if (is_told && options_.has_shards && !knows_shards_) return;
  account.uncounted = 0;
  if (is_told) ReturnAhead();
  // The unknown ones come last, so that they are none of those that are told.
  int64_t unknown = 0;
  for (int64_t step = begin; step < end;) {
    const ToldBatches::Run run = ToldFrom(account, step);
    const int64_t count = std::min(run.count, end - step);
    if (run.first) {
      const int64_t were_there = pool_.TakeThese(*run.first, count);
      doubled_batches_ += count - were_there;
      Count(were_there);
    } else {
      unknown += count;
    }
    step += count;
  }
  pool_.TakeMany(account.shard, unknown);
  Count(unknown);
  if (account.is_settled) account.told = {};
}

StepLedger::Step StepLedger::InFlight(const Account& account, int64_t step) {
  const ToldBatches::Run run = ToldFrom(account, step);
  if (!run.first) return {.batch = pool_.Take(account.shard), .counts = true};
  return {.batch = *run.first, .counts = pool_.TakeThese(*run.first, 1) > 0};
}

void StepLedger::ReturnAhead() {
  for (auto& [incarnation, account] : accounts_) {
    while (static_cast<int64_t>(account.steps.size()) >
           std::max<int64_t>(0, account.unfinished())) {
      pool_.Return(account.steps.back().batch);
      account.steps.pop_back();
      --assigned_;
    }
  }
}

bool StepLedger::MayTell() const {
  return std::any_of(accounts_.begin(), accounts_.end(), [](const auto& entry) {
    const Account& account = entry.second;
    return !account.gone && account.counts_unknown && !account.told.empty();
  });
}

void StepLedger::Saved(const durable::CheckpointManifest& manifest) {
  if (options_.has_one_checkpoint) return;
  // One that is written again takes the place of the one that was there.
  const bool is_another = manifest.global_step() != saved_step_;
  saved_step_ = manifest.global_step();
  for (const durable::WorkerProgress& progress : manifest.worker_progress()) {
    const auto it = accounts_.find(progress.incarnation());
    if (it == accounts_.end()) continue;
    // The newest one may be found damaged: the next chief takes the one before.
    if (is_another) it->second.saved = it->second.newest_saved;
    it->second.newest_saved = progress.completed_steps();
  }
}

}  // namespace parasol
