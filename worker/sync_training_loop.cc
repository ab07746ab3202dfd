#include "worker/sync_training_loop.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr absl::Duration kStepLogInterval = absl::Seconds(10);

// The replicas of device `device` of `devices`.
std::vector<int> PartOf(const std::vector<int>& replicas, size_t device,
                        size_t devices) {
  std::vector<int> part;
  for (size_t i = device; i < replicas.size(); i += devices) {
    part.push_back(replicas[i]);
  }
  return part;
}

}  // namespace

SyncTrainingLoop::SyncTrainingLoop(const Options& options, Model& model,
                                   ReplicaInput& input,
                                   TrainingParameters& parameters,
                                   ReplicaSource& replicas, Clock& clock,
                                   WorkerMetrics& metrics,
                                   TrainingReporter& reporter)
    : SyncTrainingLoop(options, {{&model, &input}}, parameters, replicas, clock,
                       metrics, reporter) {}

SyncTrainingLoop::SyncTrainingLoop(const Options& options,
                                   const std::vector<Place>& places,
                                   TrainingParameters& parameters,
                                   ReplicaSource& replicas, Clock& clock,
                                   WorkerMetrics& metrics,
                                   TrainingReporter& reporter)
    : options_(options),
      model_(*places.front().model),
      parameters_(parameters),
      replicas_(replicas),
      clock_(clock),
      metrics_(metrics),
      reporter_(reporter),
      fragments_(model_.fragments()),
      values_(model_.variables().size()) {
  for (size_t i = 0; i < places.size(); ++i) {
    ReplicaPasses::Options of_device;
    of_device.non_finite_loss = options.non_finite_loss;
    of_device.seed = options.seed;
    of_device.points = options.points;
    of_device.counts_records = options.counts_steps && i == 0;
    of_device.parts = options.parts;
    of_device.device = static_cast<int>(i);
    of_device.pulls_ahead = options.pulls_ahead;
    if (i > 0) of_others_.emplace_back(clock, reporter.hooks());
    passes_.push_back(std::make_unique<ReplicaPasses>(
        of_device, *places[i].model, *places[i].input, parameters,
        [this](TrainingParameters::Pending& pull, int64_t step,
               TrainingRecord& record) {
          return AwaitPull(pull, step, record);
        },
        clock, metrics, i == 0 ? reporter : of_others_.back()));
  }
}

absl::Status SyncTrainingLoop::Run() {
  threads_ =
      std::make_unique<ParallelCalls>(passes_.size(), options_.on_thread);
  options_.on_thread(0);
  absl::Status result = RunSteps();
  if (!result.ok()) Abandon();
  threads_ = nullptr;
  return is_over_ ? absl::OkStatus() : result;
}

// What is in flight comes to and is sent from the passes' memory.
void SyncTrainingLoop::Abandon() {
  parameters_.Stop();
  for (const auto& passes : passes_) passes->Abandon();
}

// A device that fails ends the others' waits for values.
absl::Status SyncTrainingLoop::OnAllDevices(const ParallelCalls::Call& call) {
  return threads_->Run([&](size_t device) {
    absl::Status result = call(device);
    if (!result.ok()) parameters_.Stop();
    return result;
  });
}

absl::Status SyncTrainingLoop::RunSteps() {
  while (true) {
    const absl::Time start = clock_.Now();
    ASSIGN_OR_RETURN(std::optional<ReplicaShare> share, AwaitShare());
    if (!share) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t step, PullValues(share->completed_steps));
    if (step >= share->end_step) continue;
    RETURN_IF_ERROR(RunStep(step, *std::move(share)));
    if (options_.counts_steps) {
      metrics_.step_seconds.Observe(
          absl::ToDoubleSeconds(clock_.Now() - start));
    }
  }
}

absl::StatusOr<std::optional<ReplicaShare>> SyncTrainingLoop::AwaitShare() {
  const TrainingRecord::Timed timed(record(), StepPart::kWait);
  return replicas_.Await();
}

// Shards give the oldest values that they have. One that has none of `step` has
// had a gradient of a later step, for which its worker had the values of that
// step from everywhere: nobody will need older ones, and everybody has them.
absl::StatusOr<int64_t> SyncTrainingLoop::PullValues(int64_t min_step) {
  if (values_step_ >= min_step) return values_step_;
  std::vector<size_t> pulled;
  const bool are_on_host = !options_.values_stay_on_device;
  for (size_t i = 0; are_on_host && i < model_.variables().size(); ++i) {
    // Nothing changes a frozen one: it is pulled once.
    if (has_values_ && model_.variables()[i].frozen) continue;
    pulled.push_back(i);
  }
  // A pull of nothing would say step 0. Rows wait for their own tables.
  // Those that stay on the device have a step all the same.
  if (pulled.empty() && are_on_host) return min_step;
  ASSIGN_OR_RETURN(const int64_t step, Pull(pulled, min_step));
  for (const size_t i : pulled) {
    values_[i] = model_.HostValue(i);
    RETURN_IF_ERROR(model_.Upload(i)) << model_.variables()[i].name;
  }
  has_values_ = true;
  if (!fragments_.empty()) values_step_ = step;
  return step;
}

absl::StatusOr<int64_t> SyncTrainingLoop::Pull(
    const std::vector<size_t>& variables, int64_t min_step) {
  const TrainingRecord::Timed timed(record(), StepPart::kPull);
  TrainingParameters::Pending::Outcome outcome;
  int64_t step = min_step;
  do {
    TrainingParameters::PullRequest request;
    for (const size_t i : variables) {
      request.targets.push_back({i, model_.HostValue(i)});
    }
    request.min_updates = step;
    const auto pull = parameters_.Pull(std::move(request));
    RETURN_IF_ERROR(AwaitPull(*pull, step, record()));
    outcome = pull->outcome();
    // Some fragments may have this step's update already: their shards have no
    // older values, or nobody needs these.
    if (!fragments_.empty()) {
      replicas_.Complete(outcome.min_updates);
      return outcome.min_updates;
    }
    step = outcome.max_updates;
    // Others may be further than the chief knew.
    replicas_.Complete(step);
  } while (outcome.min_updates < outcome.max_updates);
  return step;
}

absl::Status SyncTrainingLoop::AwaitPull(TrainingParameters::Pending& pull,
                                         int64_t step, TrainingRecord& record) {
  const absl::Time start = clock_.Now();
  absl::Status failure;
  while (failure.ok() && !record.WaitFor(pull, kWaitSlice)) {
    failure = CheckWait(step, start, /*has_pushed=*/false);
    // Its targets are the model's: it ends before this call does.
    if (!failure.ok()) parameters_.Stop();
  }
  const absl::Status pulled = pull.Wait();
  RETURN_IF_ERROR(failure);
  RETURN_IF_ERROR(pulled) << "pull";
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::RunStep(int64_t step, ReplicaShare share) {
  const size_t devices = passes_.size();
  for (size_t i = 0; i < devices; ++i) {
    passes_[i]->BeginStep(PartOf(share.replicas, i, devices));
  }
  pushed_moves_ = parameters_.Unanswered().moves;
  // The first device's model has pulled them. Its passes may write there.
  RETURN_IF_ERROR(OnAllDevices([&](size_t i) -> absl::Status {
    return i > 0 ? passes_[i]->TakeValues(values_) : absl::OkStatus();
  }));
  const size_t passes = std::max<size_t>(1, fragments_.size());
  for (size_t pass = 0; pass < passes; ++pass) {
    RETURN_IF_ERROR(RunPass(step, pass, share));
    if (fragments_.empty()) break;
    RETURN_IF_ERROR(TakeFragment(step, pass)) << "step " << step;
  }
  return FinishStep(step);
}

absl::Status SyncTrainingLoop::RunPass(int64_t step, size_t pass,
                                       ReplicaShare& share) {
  const size_t devices = passes_.size();
  std::set<int> computed;
  bool is_complete = false;
  while (!is_complete) {
    std::vector<int> replicas;
    for (const int replica : share.replicas) {
      if (computed.insert(replica).second) replicas.push_back(replica);
    }
    replicas_.Pushed(step);
    RETURN_IF_ERROR(OnAllDevices([&](size_t i) -> absl::Status {
      passes_[i]->KeepReaders(PartOf(share.replicas, i, devices));
      return passes_[i]->ComputeAll(step, pass, PartOf(replicas, i, devices));
    }));
    replicas_.Pushed(step + 1);
    ASSIGN_OR_RETURN(is_complete, AwaitPass(step, share));
  }
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::TakeFragment(int64_t step, size_t fragment) {
  ASSIGN_OR_RETURN(const int64_t updates, passes_.front()->TakeFragment());
  // Others may have taken this worker for lost, and gone on.
  if (fragment == 0) values_step_ = step + 1;
  if (updates != step + 1) values_step_ = -1;
  return absl::OkStatus();
}

// True: the pass is complete. False: `share` has become another one.
absl::StatusOr<bool> SyncTrainingLoop::AwaitPass(int64_t step,
                                                 ReplicaShare& share) {
  const absl::Time start = clock_.Now();
  const auto sent = [this](size_t i) -> TrainingParameters::Pending* {
    for (const auto& passes : passes_) {
      if (i < passes->sent().size()) return passes->sent()[i].push.get();
      i -= passes->sent().size();
    }
    return nullptr;
  };
  while (true) {
    for (size_t i = 0; sent(i) != nullptr; ++i) {
      const TrainingRecord::Timed timed(record(), StepPart::kPush);
      while (!record().WaitFor(*sent(i), kWaitSlice)) {
        ASSIGN_OR_RETURN(const Found found, LookAround(step, start, share));
        if (found == Found::kShare) return false;
        if (found == Found::kMove) i = 0;
      }
    }
    if (fragments_.empty()) return true;
    const TrainingRecord::Timed timed(record(), StepPart::kPull);
    Found found = Found::kNothing;
    while (found == Found::kNothing) {
      if (record().WaitFor(passes_.front()->PullOfFragment(step), kWaitSlice)) {
        return true;
      }
      ASSIGN_OR_RETURN(found, LookAround(step, start, share));
    }
    if (found == Found::kShare) return false;
  }
}

absl::StatusOr<SyncTrainingLoop::Found> SyncTrainingLoop::LookAround(
    int64_t step, absl::Time start, ReplicaShare& share) {
  const absl::Status fault = CheckWait(step, start, /*has_pushed=*/true);
  if (MayAwaitLastPushes(fault)) return Found::kNothing;
  RETURN_IF_ERROR(fault);
  const bool has_moved = pushed_moves_ != parameters_.Unanswered().moves;
  if (has_moved) PushAgain(step);
  ASSIGN_OR_RETURN(ReplicaShare now, replicas_.Now());
  if (now.version != share.version) {
    share = std::move(now);
    return Found::kShare;
  }
  return has_moved ? Found::kMove : Found::kNothing;
}

bool SyncTrainingLoop::MayAwaitLastPushes(const absl::Status& fault) {
  if (!absl::IsCancelled(fault) || is_over_) return false;
  const absl::Time now = clock_.Now();
  stopped_at_ = std::min(stopped_at_, now);
  return now - stopped_at_ < options_.last_push_limit;
}

// A shard that came in place of another may lack gradients that the other has
// acknowledged. Shards that have them count them once.
void SyncTrainingLoop::PushAgain(int64_t step) {
  pushed_moves_ = parameters_.Unanswered().moves;
  for (const auto& passes : passes_) passes->PushAgain(step);
}

absl::Status SyncTrainingLoop::CheckWait(int64_t step, absl::Time start,
                                         bool has_pushed) {
  ASSIGN_OR_RETURN(const ReplicaShare share, replicas_.Now());
  // An end that was brought forward may find some workers in a step that the
  // others have not begun.
  if (share.is_over) {
    is_over_ = true;
    return absl::CancelledError("the job is complete");
  }
  const absl::Time now = clock_.Now();
  const absl::Duration waited = now - start;
  const TrainingParameters::Awaited awaited = parameters_.Unanswered();
  const bool is_late =
      now - std::max(start, awaited.last_loading) >= options_.step_timeout;
  if (waited < kStepLogInterval && !is_late) return absl::OkStatus();
  // A pull waits for ps alone.
  const bool is_for_workers = has_pushed && !share.awaited.empty();
  const std::vector<std::string>& names =
      is_for_workers ? share.awaited : awaited.peers;
  const std::string what =
      absl::StrCat(is_for_workers ? "the gradients of " : "the answer of ",
                   names.empty() ? "a ps that has just answered"
                                 : absl::StrJoin(names, ", "));
  if (is_late) {
    return absl::UnavailableError(absl::StrCat(
        "step ", step, " was not complete in ",
        absl::FormatDuration(options_.step_timeout), ": waited for ", what));
  }
  LOG_EVERY(INFO, kStepLogInterval)
      << "waiting for step " << step << " to be complete: for " << what;
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::FinishStep(int64_t step) {
  std::set<int> stale;
  for (const auto& passes : passes_) {
    std::vector<ReplicaPasses::Sent>& all = passes->sent();
    while (!all.empty()) {
      const ReplicaPasses::Sent sent = std::move(all.back());
      all.pop_back();
      RETURN_IF_ERROR(sent.push->Wait())
          << "push of step " << step << ", replica " << sent.replica;
      if (sent.push->outcome().stale) stale.insert(sent.replica);
    }
  }
  metrics_.stale_gradients.Add(stale.size());
  for (TrainingReporter& other : of_others_) {
    reporter_.AddWorkOf(other.Take());
  }
  if (options_.counts_steps) record().AddStep();
  replicas_.Complete(step + 1);
  return absl::OkStatus();
}

}  // namespace parasol
