#include "coordinator/steps/step_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

// Number of batches that a worker is told beyond its granted steps, so that it
// decodes them ahead.
constexpr int64_t kBatchesAhead = 4;

bool IsTotal(int64_t value) {
  return value >= 0 && value <= StepLedger::kMaxTotal;
}

int64_t StepOf(const durable::CheckpointManifest& manifest) {
  return std::clamp<int64_t>(manifest.global_step(), 0, StepLedger::kMaxTotal);
}

// Returns a manifest's unfinished batches; none if no run that has done the
// manifest's steps can have them.
BatchSpans UnfinishedOf(const durable::CheckpointManifest& manifest) {
  BatchSpans spans;
  for (const durable::BatchSpan& span : manifest.unfinished_batch()) {
    if (!IsTotal(span.first()) || !IsTotal(span.count())) return {};
    spans.Add(span.first(), span.count());
  }
  if (spans.empty()) return spans;
  const int64_t begun = StepOf(manifest) + spans.size();
  return spans.ends().rbegin()->second <= begun ? spans : BatchSpans();
}

}  // namespace

// A claim that waits can go when the smallest clock rises, or when there are
// steps to grant again.
class StepLedger::NewsCheck {
 public:
  explicit NewsCheck(StepLedger& ledger)
      : ledger_(ledger), clock_(ledger.SmallestClock()), has_free_(HasFree()) {}
  ~NewsCheck() {
    if (ledger_.SmallestClock() > clock_ || (HasFree() && !has_free_)) {
      ++ledger_.news_;
    }
  }

 private:
  bool HasFree() const { return ledger_.end_step_ && ledger_.Free() > 0; }

  StepLedger& ledger_;
  const int64_t clock_;
  const bool has_free_;
};

StepLedger::StepLedger(const durable::CheckpointManifest& manifest,
                       Options options)
    : options_(options),
      earlier_end_(options.earlier_end),
      resumed_(true),
      has_forgotten_(manifest.worker_progress_size() >=
                     static_cast<int>(DepartedWorkers::kMax)),
      global_step_(StepOf(manifest)),
      pool_(StepOf(manifest), UnfinishedOf(manifest)) {
  std::optional<int64_t> smallest;
  for (const durable::WorkerProgress& progress : manifest.worker_progress()) {
    if (!IsTotal(progress.completed_steps())) continue;
    DepartedWorkers::Worker worker = {.completed = progress.completed_steps()};
    if (progress.has_clock() && IsTotal(progress.clock())) {
      worker.clock = progress.clock();
      smallest = std::min(smallest.value_or(*worker.clock), *worker.clock);
    }
    has_forgotten_ |= !departed_.Add(progress.incarnation(), worker);
  }
  last_smallest_clock_ = smallest.value_or(0);
}

void StepLedger::SetEnd(int64_t end_step) {
  if (end_step_ == end_step) return;
  const NewsCheck check(*this);
  end_step_ = end_step;
  for (auto& [incarnation, account] : accounts_) CountUncounted(account);
}

void StepLedger::SetShards(const std::vector<int64_t>& shard_batches) {
  if (shard_batches.empty()) return;
  const NewsCheck check(*this);
  pool_.SetShards(shard_batches);
  knows_shards_ = true;
  for (auto& [incarnation, account] : accounts_) CountUncounted(account);
}

void StepLedger::EndEarly() {
  if (!end_step_) return;
  earlier_end_ = std::max(earlier_end_, *end_step_);
  SetEnd(std::min(*end_step_, global_step_ + outstanding_));
}

void StepLedger::SetLimit(std::optional<int64_t> limit) {
  if (limit_ == limit) return;
  const NewsCheck check(*this);
  limit_ = limit;
}

void StepLedger::SetBatches(std::optional<int64_t> batches) {
  if (batches_ == batches) return;
  const NewsCheck check(*this);
  batches_ = batches;
}

absl::Status StepLedger::Check(uint64_t worker, int64_t completed,
                               int64_t started) const {
  const auto it = accounts_.find(worker);
  const bool is_stranger = it == accounts_.end();
  const int64_t limit =
      is_stranger ? LimitOfStranger(worker) : it->second.limit;
  if (completed < 0 || completed > limit) {
    return absl::FailedPreconditionError(absl::StrCat(
        "completed_steps is ", completed, ", but this process can have ",
        "completed 0 to ", limit, " steps; start it again"));
  }
  if (started < 0 || started > limit) {
    return absl::FailedPreconditionError(absl::StrCat(
        "started_steps is ", started, ", but this process can have started 0 ",
        "to ", limit, " steps; start it again"));
  }
  if (!is_stranger && it->second.uncounted > MayBeUncounted()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "completed_steps is ", completed, ", but the job ends at step ",
        *end_step_, " and is at step ", global_step_, "; start it again"));
  }
  return absl::OkStatus();
}

StepLedger::Account& StepLedger::AddAccount(uint64_t worker,
                                            const WorkerArrival& arrival) {
  const std::optional<DepartedWorkers::Worker> known =
      departed_.Extract(worker);
  Account& account = accounts_[worker];
  account.counts_unknown =
      known ? resumed_ && !known->limit : CountsUnknownSteps();
  if (known) {
    account.completed = known->completed;
  } else if (!account.counts_unknown) {
    account.completed = arrival.completed;
  }
  account.granted = account.completed;
  account.limit =
      known && known->limit
          ? *known->limit
          : std::max(account.completed, arrival.completed) + kMaxUnfinished;
  account.shard = arrival.shard;
  account.told = arrival.told;
  Complete(account, arrival.completed);
  // The worker's is the newer one.
  std::optional<int64_t> lead;
  if (resumed_) lead = arrival.clock_lead;
  if (!lead && known && known->clock) lead = *known->clock - known->completed;
  account.is_newcomer = resumed_ && !has_granted_ && !lead;
  // What it had done already is no reason to hold it up.
  account.lead = lead ? std::clamp(*lead, -kMaxTotal, kMaxTotal)
                      : SmallestClock() - account.completed;
  return account;
}

void StepLedger::Enter(uint64_t worker, const WorkerArrival& arrival) {
  const NewsCheck check(*this);
  const int64_t smallest = SmallestClock();
  auto it = accounts_.find(worker);
  const bool is_new = it == accounts_.end();
  Account& account = is_new ? AddAccount(worker, arrival) : it->second;
  account.shard = arrival.shard;
  Complete(account, arrival.completed);
  if (!account.gone) return KeepClock(account);
  account.gone = false;
  account.version = options_.first_version + ++versions_;
  account.is_first_version = is_new;
  account.has_told_version = false;
  // After a restart of the chief, those that come may be behind: others are yet
  // to come.
  if (has_granted_) {
    account.lead = std::max(account.lead, smallest - account.completed);
  }
  KeepClock(account);
}

void StepLedger::Report(uint64_t worker, int64_t completed) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end() || completed <= it->second.completed) return;
  const NewsCheck check(*this);
  Complete(it->second, completed);
  KeepClock(it->second);
}

void StepLedger::Complete(Account& account, int64_t completed) {
  int64_t steps = std::min(completed, account.limit) - account.completed;
  if (steps <= 0) return;
  account.completed += steps;
  account.granted = std::max(account.granted, account.completed);
  int64_t counted = 0;
  for (; steps > 0 && !account.steps.empty(); --steps) {
    const bool counts = account.steps.front().counts;
    counted += counts;
    doubled_batches_ += !counts;
    account.steps.pop_front();
    ++completed_grants_;
  }
  outstanding_ -= counted;
  assigned_ -= counted;
  for (; steps > 0 && !account.lost_batches.empty(); --steps) {
    const bool counts = pool_.Remove(account.lost_batches.front());
    counted += counts;
    doubled_batches_ += !counts;
    account.lost_batches.pop_front();
  }
  Count(counted);
  CompleteUnknown(account, steps);
}

void StepLedger::Count(int64_t batches) {
  // Two workers that an earlier chief gave the same batch both report it.
  const int64_t most =
      end_step_ ? std::max(*end_step_, global_step_) : kMaxTotal;
  global_step_ = std::min(global_step_ + batches, most);
}

bool StepLedger::IsCurrent(Account& account,
                           const wire::ClaimStepsRequest& claim) {
  if (account.gone) return false;
  if (claim.assignment_version() == account.version) {
    account.has_told_version = true;
    return true;
  }
  return claim.assignment_version() == 0 && account.is_first_version &&
         !account.has_told_version;
}

void StepLedger::Settle(Account& account, int64_t started) {
  if (account.is_settled) return;
  started = std::clamp(started, account.completed, account.limit);
  if (account.counts_unknown && started > account.completed) ReturnAhead();
  for (int64_t step = account.completed; step < started; ++step) {
    Step in_flight = {.counts = false};
    if (!account.lost_batches.empty()) {
      in_flight.batch = account.lost_batches.front();
      in_flight.counts = pool_.Remove(in_flight.batch);
      account.lost_batches.pop_front();
    } else if (account.counts_unknown) {
      in_flight = InFlight(account, step);
    }
    outstanding_ += in_flight.counts;
    assigned_ += in_flight.counts;
    account.steps.push_back(in_flight);
  }
  account.lost_batches.clear();
  account.granted = account.limit = started;
  account.counts_unknown = false;
  if (account.uncounted == 0) account.told = {};
  account.is_settled = true;
}

void StepLedger::Answer(const wire::ClaimStepsRequest& claim, int64_t want,
                        int workers, wire::ClaimStepsResponse& response) {
  auto it = accounts_.find(claim.task().incarnation());
  if (it == accounts_.end()) return;
  Account& account = it->second;
  if (IsCurrent(account, claim)) {
    const NewsCheck check(*this);
    Settle(account, claim.started_steps());
    Grant(account, want, workers);
  }
  response.set_assignment_version(account.version);
  response.set_granted_steps(account.granted);
  response.set_steps_before_batches(account.completed);
  response.set_saved_steps(account.saved);
  if (options_.bound) response.set_clock_lead(account.lead);
  wire::BatchRange* range = nullptr;
  for (const Step& step : account.steps) {
    if (range == nullptr || range->first() + range->count() != step.batch) {
      range = response.add_batch();
      range->set_first(step.batch);
    }
    range->set_count(range->count() + 1);
  }
}

void StepLedger::Grant(Account& account, int64_t want, int workers) {
  if (!end_step_ || want <= 0) return;
  if (!has_granted_) RaiseNewcomers();
  const int64_t left = GrantEnd() - global_step_;
  // Half of a fair share at most: the slowest worker holds up the end by that.
  const int64_t may_hold = std::clamp<int64_t>(
      left / (2 * int64_t{std::max(1, workers)}), 1, kMaxUnfinished);
  int64_t more = std::min({want, may_hold - account.unfinished(), Free()});
  if (options_.bound) {
    const int64_t limit = SmallestClock() + *options_.bound + 1;
    more = std::min(more, limit - (account.granted + account.lead));
  }
  if (more <= 0) return;
  account.granted += more;
  account.limit = account.granted;
  outstanding_ += more;
  has_granted_ = true;
  FillBatches(account);
}

void StepLedger::FillBatches(Account& account) {
  const int64_t unfinished = account.unfinished();
  auto size = static_cast<int64_t>(account.steps.size());
  for (; size < unfinished + kBatchesAhead; ++size) {
    if (global_step_ + assigned_ < BatchesEnd()) {
      account.steps.push_back({.batch = pool_.Take(account.shard)});
      ++assigned_;
    } else if (size < unfinished) {
      account.steps.push_back({.batch = TakeBackBatch()});
    } else {
      return;
    }
  }
}

int64_t StepLedger::TakeBackBatch() {
  Account* from = nullptr;
  for (auto& [incarnation, account] : accounts_) {
    const auto size = static_cast<int64_t>(account.steps.size());
    if (size > account.unfinished()) from = &account;
  }
  if (from == nullptr) {
    ++assigned_;
    return pool_.Take(0);
  }
  const int64_t batch = from->steps.back().batch;
  from->steps.pop_back();
  return batch;
}

std::vector<int64_t> StepLedger::BatchesOf(uint64_t worker) const {
  std::vector<int64_t> batches;
  for (const Step& step : accounts_.at(worker).steps) {
    batches.push_back(step.batch);
  }
  return batches;
}

void StepLedger::Release(uint64_t worker) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end() || it->second.gone) return;
  const NewsCheck check(*this);
  last_smallest_clock_ = SmallestClock();
  Account& account = it->second;
  int64_t held = account.unfinished();
  for (const Step& step : account.steps) {
    if (held > 0) account.lost_batches.push_back(step.batch);
    if (step.counts) {
      pool_.Return(step.batch);
      --assigned_;
      outstanding_ -= held > 0;
    }
    --held;
  }
  account.steps.clear();
  account.granted = account.completed;
  account.is_settled = false;
  account.gone = true;
  KeepClock(account);
}

void StepLedger::Retire(uint64_t worker) {
  auto it = accounts_.find(worker);
  if (it == accounts_.end() || !it->second.gone) return;
  const Account& account = it->second;
  DepartedWorkers::Worker departed = {.completed = account.completed -
                                                   account.uncounted};
  // One that was never settled may have been granted steps by an earlier chief.
  if (!account.counts_unknown) departed.limit = account.limit;
  has_forgotten_ |= !departed_.Add(worker, departed);
  accounts_.erase(it);
}

std::vector<durable::WorkerProgress> StepLedger::Progress() const {
  std::vector<durable::WorkerProgress> progress;
  departed_.AddTo(progress);
  for (const auto& [incarnation, account] : accounts_) {
    durable::WorkerProgress& entry = progress.emplace_back();
    entry.set_incarnation(incarnation);
    entry.set_completed_steps(account.completed - account.uncounted);
    if (options_.bound && !account.gone) {
      entry.set_clock(account.clock() - account.uncounted);
    }
  }
  return progress;
}

std::vector<durable::BatchSpan> StepLedger::Unfinished() const {
  BatchSpans spans = pool_.Left();
  for (const auto& [incarnation, account] : accounts_) {
    for (const Step& step : account.steps) {
      if (step.counts) spans.Add(step.batch);
    }
  }
  std::vector<durable::BatchSpan> unfinished;
  for (const auto& [first, end] : spans.ends()) {
    durable::BatchSpan& span = unfinished.emplace_back();
    span.set_first(first);
    span.set_count(end - first);
  }
  return unfinished;
}

bool StepLedger::HoldsSteps(uint64_t worker) const {
  auto it = accounts_.find(worker);
  return it != accounts_.end() && it->second.unfinished() > 0;
}

std::vector<uint64_t> StepLedger::Awaited() const {
  std::vector<uint64_t> awaited;
  // All wait for data.
  if (end_step_ && Free() <= 0 && AwaitsBatches()) return awaited;
  const int64_t smallest = SmallestClock();
  const bool holds_up =
      options_.bound
          ? !clocks_.empty() && *clocks_.rbegin() > smallest + *options_.bound
          : end_step_ && Free() <= 0;
  if (!holds_up) return awaited;
  for (const auto& [incarnation, account] : accounts_) {
    const bool is_awaited =
        options_.bound ? account.clock() == smallest : account.unfinished() > 0;
    if (is_awaited && !account.gone) awaited.push_back(incarnation);
  }
  return awaited;
}

int64_t StepLedger::SmallestClock() const {
  return clocks_.empty() ? last_smallest_clock_ : *clocks_.begin();
}

void StepLedger::KeepClock(Account& account) {
  if (!options_.bound) return;
  if (account.kept_clock) clocks_.erase(clocks_.find(*account.kept_clock));
  account.kept_clock.reset();
  if (account.gone) return;
  account.kept_clock = account.clock();
  clocks_.insert(account.clock());
}

void StepLedger::RaiseNewcomers() {
  if (!clocks_.empty()) {
    // A worker that is further behind was gone: the others have gone on.
    const int64_t floor = *clocks_.rbegin() - *options_.bound - 1;
    for (auto& [incarnation, account] : accounts_) {
      if (account.gone || account.clock() >= floor) continue;
      account.lead = floor - account.completed;
      KeepClock(account);
    }
  }
  std::optional<int64_t> smallest;
  for (const auto& [incarnation, account] : accounts_) {
    if (account.gone || account.is_newcomer) continue;
    smallest = std::min(smallest.value_or(account.clock()), account.clock());
  }
  for (auto& [incarnation, account] : accounts_) {
    if (!account.is_newcomer || account.gone || !smallest) continue;
    account.lead = std::max(account.lead, *smallest - account.completed);
    KeepClock(account);
  }
}

}  // namespace parasol
