#include "coordinator/steps/replica_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol {

absl::Status ReplicaPlan::Check(uint64_t worker, int64_t completed,
                                int64_t) const {
  const bool is_stranger =
      strangers_.contains(worker) || (is_new_run_ && !known_.contains(worker));
  if (completed >= 0 && (is_stranger || !end_step_ ||
                         completed <= std::max(*end_step_, earlier_end_))) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "completed_steps is ", completed, ", but the job ends at step ",
      end_step_.value_or(0), "; start this process again"));
}

void ReplicaPlan::EndEarly() {
  if (!end_step_) return;
  earlier_end_ = std::max(earlier_end_, *end_step_);
  full_end_ = *end_step_;
  int64_t begun = global_step_;
  if (!is_mirrored_) {
    for (const auto& [worker, known] : pushed_) {
      begun = std::max(begun, known.steps);
    }
    ++begun;
  }
  EndAt(begun);
}

void ReplicaPlan::SetLimit(std::optional<int64_t> limit) {
  const int64_t before = ToldEnd();
  limit_ = limit;
  if (ToldEnd() != before) ++limits_;
}

int64_t ReplicaPlan::ToldEnd() const {
  const int64_t end = end_step_.value_or(0);
  if (!limit_ || full_end_) return end;
  return std::min(end, std::max({*limit_, global_step_, begun_}));
}

void ReplicaPlan::EndAt(int64_t step) {
  end_step_ = std::min(*full_end_, std::max(step, global_step_));
  if (is_mirrored_) return;
  assignment_.Renew();
  end_version_ = assignment_.version();
}

void ReplicaPlan::EndAfter(int64_t pushed) {
  // Nobody goes beyond the job's own end.
  if (*end_step_ == *full_end_) return;
  if (pushed > *end_step_) return EndAt(pushed);
  const bool is_pushed = std::any_of(
      pushed_.begin(), pushed_.end(),
      [this](const auto& entry) { return entry.second.steps >= *end_step_; });
  // Found at a shard, of which others may have less.
  if (global_step_ >= *end_step_ && !is_pushed) EndAt(global_step_ + 1);
}

bool ReplicaPlan::IsComplete() const {
  if (!StepPlan::IsComplete()) return false;
  return !full_end_ ||
         std::all_of(pushed_.begin(), pushed_.end(), [this](const auto& entry) {
           return HasHeard(entry.second);
         });
}

void ReplicaPlan::Enter(uint64_t worker, const WorkerArrival& arrival) {
  const bool is_first = known_.insert(worker).second;
  if (is_new_run_ && is_first && arrival.completed > 0)
    strangers_.insert(worker);
  if (strangers_.contains(worker)) return;
  assignment_.Join(worker, arrival.shard);
  pushed_.try_emplace(worker);
  // In a new run the next claim says it, once there are variables.
  if (!is_new_run_) Report(worker, arrival.completed);
}

void ReplicaPlan::Report(uint64_t worker, int64_t completed) {
  if (strangers_.contains(worker) || completed <= global_step_) return;
  // Without the end it can't be checked; the next claim tells it again.
  if (!end_step_) return;
  global_step_ = completed;
}

void ReplicaPlan::Hears(uint64_t worker, int64_t version) {
  const auto found = pushed_.find(worker);
  if (found == pushed_.end()) return;
  found->second.version = std::max(found->second.version, version);
}

void ReplicaPlan::ReportPushed(uint64_t worker, int64_t pushed) {
  const auto found = pushed_.find(worker);
  if (found == pushed_.end()) return;
  Pushed& known = found->second;
  const int64_t told = ToldEnd();
  known.steps = pushed;
  begun_ = std::max(begun_, pushed);
  // Others wait at a limit that this worker is beyond.
  if (ToldEnd() != told) ++limits_;
  if (full_end_ && !is_mirrored_) EndAfter(pushed);
  if (pushed <= global_step_) return;
  if (known.waits_in != global_step_) known.waits = 0;
  known.waits_in = global_step_;
  if (++known.waits >= kPatience) late_step_ = global_step_;
}

void ReplicaPlan::Release(uint64_t worker) {
  assignment_.Lose(worker);
  pushed_.erase(worker);
}

std::vector<uint64_t> ReplicaPlan::Awaited() const {
  std::vector<uint64_t> awaited;
  if (full_end_ && StepPlan::IsComplete()) {
    for (const auto& [worker, known] : pushed_) {
      if (!HasHeard(known)) awaited.push_back(worker);
    }
    return awaited;
  }
  if (late_step_ != global_step_) return awaited;
  for (const auto& [worker, pushed] : pushed_) {
    if (pushed.steps <= global_step_ &&
        !assignment_.ReplicasOf(worker).empty()) {
      awaited.push_back(worker);
    }
  }
  return awaited;
}

std::optional<std::vector<int>> ReplicaPlan::ReplicasOf(uint64_t worker) const {
  if (!assignment_.Has(worker)) return std::nullopt;
  return assignment_.ReplicasOf(worker);
}

void ReplicaPlan::RenewAssignment(int64_t version) {
  if (version == assignment_.version()) assignment_.Renew();
}

void ReplicaPlan::Answer(const wire::ClaimStepsRequest& claim, int64_t want,
                         int workers, wire::ClaimStepsResponse& response) {
  const uint64_t worker = claim.task().incarnation();
  for (const int replica : assignment_.ReplicasOf(worker)) {
    response.add_replica(replica);
  }
  response.set_assignment_version(assignment_.version());
  response.set_end_step(ToldEnd());
}

}  // namespace parasol
