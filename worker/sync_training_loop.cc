#include "worker/sync_training_loop.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/pass_seed.h"

namespace parasol {
namespace {

// How often a wait for a step looks for a new share. An answer ends it at once.
constexpr absl::Duration kWatchInterval = absl::Milliseconds(50);
constexpr absl::Duration kStepLogInterval = absl::Seconds(10);

void Scale(float weight, std::vector<float>& gradient) {
  if (weight == 1) return;
  for (float& element : gradient) element *= weight;
}

}  // namespace

SyncTrainingLoop::SyncTrainingLoop(const Options& options, Model& model,
                                   ReplicaInput& input,
                                   ParameterClient& parameters,
                                   ReplicaSource& replicas, Clock& clock,
                                   WorkerMetrics& metrics,
                                   TrainingReporter& reporter)
    : options_(options),
      model_(model),
      input_(input),
      parameters_(parameters),
      replicas_(replicas),
      clock_(clock),
      metrics_(metrics),
      record_(options.non_finite_loss, clock, metrics, reporter) {
  for (Staged& staged : staged_) staged.batch = model.NewStagedBatch();
}

absl::Status SyncTrainingLoop::Run() {
  absl::Status result = RunSteps();
  if (!result.ok()) Abandon();
  return is_over_ ? absl::OkStatus() : result;
}

// What is in flight comes to and is sent from this object's memory.
void SyncTrainingLoop::Abandon() {
  parameters_.Stop();
  for (Staged& staged : staged_) {
    if (staged.rows != nullptr) staged.rows->Wait().IgnoreError();
    staged.rows = nullptr;
  }
  for (Sent& sent : sent_) sent.push->Wait().IgnoreError();
  sent_.clear();
}

absl::Status SyncTrainingLoop::RunSteps() {
  while (true) {
    const absl::Time start = clock_.Now();
    ASSIGN_OR_RETURN(std::optional<ReplicaShare> share, replicas_.Await());
    record_.Charge(metrics_.wait_steps_seconds, start);
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

// Shards give the oldest values that they have. One that has none of `step` has
// had a gradient of a later step, for which its worker had the values of that
// step from everywhere: nobody will need older ones, and everybody has them.
absl::StatusOr<int64_t> SyncTrainingLoop::PullValues(int64_t min_step) {
  std::vector<size_t> pulled;
  for (size_t i = 0; i < model_.variables().size(); ++i) {
    // Nothing changes a frozen one: it is pulled once.
    if (has_values_ && model_.variables()[i].frozen) continue;
    pulled.push_back(i);
  }
  // A pull of nothing would say step 0. Rows wait for their own tables.
  if (pulled.empty()) return min_step;
  const absl::Time start = clock_.Now();
  ParameterClient::Pending::Outcome outcome;
  int64_t step = min_step;
  do {
    ParameterClient::PullRequest request;
    for (const size_t i : pulled) {
      request.targets.push_back({i, model_.HostValue(i)});
    }
    request.min_updates = step;
    const auto pull = parameters_.Pull(std::move(request));
    RETURN_IF_ERROR(AwaitPull(*pull, step));
    outcome = pull->outcome();
    step = outcome.max_updates;
    // Others may be further than the chief knew.
    replicas_.Complete(step);
  } while (outcome.min_updates < outcome.max_updates);
  record_.Charge(metrics_.wait_pull_seconds, start);
  for (const size_t i : pulled) {
    RETURN_IF_ERROR(model_.Upload(i)) << model_.variables()[i].name;
  }
  has_values_ = true;
  return step;
}

absl::Status SyncTrainingLoop::AwaitPull(ParameterClient::Pending& pull,
                                         int64_t step) {
  const absl::Time start = clock_.Now();
  absl::Status failure;
  while (failure.ok() && !pull.WaitFor(kWatchInterval)) {
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
  std::erase_if(gradients_, [&share](const auto& entry) {
    return std::count(share.replicas.begin(), share.replicas.end(),
                      entry.first) == 0;
  });
  std::set<int> computed;
  pushed_moves_ = parameters_.moves();
  bool is_complete = false;
  while (!is_complete) {
    input_.Keep(share.replicas);
    std::vector<int> replicas;
    for (const int replica : share.replicas) {
      if (computed.insert(replica).second) replicas.push_back(replica);
    }
    replicas_.Pushed(step);
    RETURN_IF_ERROR(ComputeAll(step, replicas));
    replicas_.Pushed(step + 1);
    ASSIGN_OR_RETURN(is_complete, AwaitPushes(step, computed, share));
  }
  return FinishStep(step);
}

// The next replica's rows come while one computes. A device may still be in the
// backward pass of the last step, and reads its batch: the next one takes the
// other place.
absl::Status SyncTrainingLoop::ComputeAll(int64_t step,
                                          const std::vector<int>& replicas) {
  for (size_t i = 0; i < replicas.size(); ++i) {
    Staged& staged = staged_[(first_staged_ + i) % 2];
    if (i == 0) {
      RETURN_IF_ERROR(Stage(step, replicas[i], staged));
    }
    if (i + 1 < replicas.size()) {
      RETURN_IF_ERROR(
          Stage(step, replicas[i + 1], staged_[(first_staged_ + i + 1) % 2]));
    }
    RETURN_IF_ERROR(FinishRows(step, staged));
    RETURN_IF_ERROR(Compute(step, staged));
  }
  if (options_.gradients_stay_on_device) first_staged_ += replicas.size();
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::Stage(int64_t step, int replica,
                                     Staged& staged) {
  const absl::Time start = clock_.Now();
  ASSIGN_OR_RETURN(const ReplicaInput::Share share,
                   input_.ShareOf(replica, step));
  record_.Charge(metrics_.wait_input_seconds, start);
  if (options_.counts_steps) {
    metrics_.corrupt_records.Add(input_.TakeSkippedRecords());
  }
  staged.replica = replica;
  staged.weight = share.weight;
  staged.has_examples = share.batch != nullptr && share.batch->size > 0;
  if (!staged.has_examples) return absl::OkStatus();
  const absl::Time stage_start = clock_.Now();
  RETURN_IF_ERROR(model_.Stage(*share.batch, *staged.batch));
  record_.ChargePass(stage_start);
  ParameterClient::PullRequest request;
  request.min_updates = step;
  for (const StagedBatch::Rows& rows : staged.batch->rows()) {
    if (rows.ids.empty()) continue;
    request.rows.push_back({rows.table, rows.ids, rows.values});
  }
  if (!request.rows.empty()) staged.rows = parameters_.Pull(std::move(request));
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::FinishRows(int64_t step, Staged& staged) {
  const auto rows = std::move(staged.rows);
  if (rows == nullptr) return absl::OkStatus();
  const absl::Time start = clock_.Now();
  RETURN_IF_ERROR(AwaitPull(*rows, step));
  record_.Charge(metrics_.wait_pull_seconds, start);
  if (rows->outcome().max_updates > step) {
    LOG_EVERY(INFO, kStepLogInterval)
        << "step " << step << ", replica " << staged.replica
        << ": some rows are of step " << rows->outcome().max_updates
        << " already: their tables will drop this gradient";
  }
  return absl::OkStatus();
}

absl::Status SyncTrainingLoop::Compute(int64_t step, Staged& staged) {
  const int replica = staged.replica;
  if (!staged.has_examples) {
    options_.gradients_stay_on_device ? PushPart(step, staged)
                                      : PushNothing(step, replica);
    return absl::OkStatus();
  }
  Gradients& kept = gradients_[replica];
  kept.variables.resize(model_.variables().size());
  kept.tables.resize(model_.tables().size());
  ParameterClient::PushRequest pack;
  size_t pack_elements = 0;
  // The model's own memory is that of the next replica's gradients too.
  const auto add_variable = [&](size_t variable,
                                absl::Span<const float> gradient) {
    std::vector<float>& copy = kept.variables[variable];
    copy.assign(gradient.begin(), gradient.end());
    Scale(staged.weight, copy);
    pack.gradients.push_back({variable, copy});
    pack_elements += gradient.size();
    if (pack_elements < ParameterClient::kPackElements) return;
    Push(step, replica, std::exchange(pack, {}));
    pack_elements = 0;
  };
  // A table is pushed without rows too: it counts the steps.
  const auto add_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                            absl::Span<const float> gradients) {
    Gradients::Rows& copy = kept.tables[table];
    copy.ids.assign(ids.begin(), ids.end());
    copy.values.assign(gradients.begin(), gradients.end());
    Scale(staged.weight, copy.values);
    pack.rows.push_back({table, copy.ids, copy.values});
  };
  const absl::Time start = clock_.Now();
  const absl::StatusOr<BatchResult> result =
      model_.Gradients(*staged.batch, PassSeed(options_.seed, step, replica),
                       {.variable = add_variable, .rows = add_rows});
  record_.ChargePass(start);
  RETURN_IF_ERROR(result.status());
  RETURN_IF_ERROR(record_.AddResult(*result));
  options_.gradients_stay_on_device ? PushPart(step, staged)
                                    : Push(step, replica, std::move(pack));
  return absl::OkStatus();
}

void SyncTrainingLoop::PushNothing(int64_t step, int replica) {
  Gradients& kept = gradients_[replica];
  kept.variables.resize(model_.variables().size());
  kept.tables.resize(model_.tables().size());
  ParameterClient::PushRequest request;
  for (size_t i = 0; i < kept.variables.size(); ++i) {
    if (model_.variables()[i].frozen) continue;
    kept.variables[i].assign(model_.variables()[i].elements(), 0);
    request.gradients.push_back({i, kept.variables[i]});
  }
  for (size_t table = 0; table < kept.tables.size(); ++table) {
    request.rows.push_back({table, {}, {}});
  }
  Push(step, replica, std::move(request));
}

void SyncTrainingLoop::Push(int64_t step, int replica,
                            ParameterClient::PushRequest request) {
  if (request.gradients.empty() && request.rows.empty()) return;
  request.sync = {.step = step, .replica = replica};
  sent_.push_back({replica, parameters_.Push(std::move(request))});
}

void SyncTrainingLoop::PushPart(int64_t step, const Staged& staged) {
  ParameterClient::PushRequest request;
  request.sync = {.step = step, .replica = staged.replica};
  request.on_device = {.has_examples = staged.has_examples,
                       .weight = staged.weight};
  const absl::Time start = clock_.Now();
  sent_.push_back({staged.replica, parameters_.Push(std::move(request))});
  record_.Charge(metrics_.wait_push_seconds, start);
}

// True: the step is complete. False: `share` has become another one.
absl::StatusOr<bool> SyncTrainingLoop::AwaitPushes(
    int64_t step, const std::set<int>& computed, ReplicaShare& share) {
  const absl::Time start = clock_.Now();
  for (size_t i = 0; i < sent_.size(); ++i) {
    while (!sent_[i].push->WaitFor(kWatchInterval)) {
      RETURN_IF_ERROR(CheckWait(step, start, /*has_pushed=*/true));
      if (pushed_moves_ != parameters_.moves()) PushAgain(step, computed);
      ASSIGN_OR_RETURN(ReplicaShare now, replicas_.Now());
      if (now.version == share.version) continue;
      share = std::move(now);
      record_.Charge(metrics_.wait_push_seconds, start);
      return false;
    }
  }
  record_.Charge(metrics_.wait_push_seconds, start);
  return true;
}

// A shard that came in place of another may lack gradients that the other has
// acknowledged. Shards that have them count them once.
void SyncTrainingLoop::PushAgain(int64_t step, const std::set<int>& computed) {
  pushed_moves_ = parameters_.moves();
  for (const int replica : computed) {
    const Gradients& kept = gradients_[replica];
    ParameterClient::PushRequest request;
    for (size_t i = 0; i < kept.variables.size(); ++i) {
      if (model_.variables()[i].frozen) continue;
      request.gradients.push_back({i, kept.variables[i]});
    }
    for (size_t i = 0; i < kept.tables.size(); ++i) {
      request.rows.push_back({i, kept.tables[i].ids, kept.tables[i].values});
    }
    Push(step, replica, std::move(request));
  }
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
  const bool is_late = now - std::max(start, parameters_.last_loading()) >=
                       options_.step_timeout;
  if (waited < kStepLogInterval && !is_late) return absl::OkStatus();
  // A pull waits for ps alone.
  const bool is_for_workers = has_pushed && !share.awaited.empty();
  const std::vector<std::string> names =
      is_for_workers ? share.awaited : parameters_.Unanswered();
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
  while (!sent_.empty()) {
    const Sent sent = std::move(sent_.back());
    sent_.pop_back();
    RETURN_IF_ERROR(sent.push->Wait())
        << "push of step " << step << ", replica " << sent.replica;
    if (sent.push->outcome().stale) stale.insert(sent.replica);
  }
  metrics_.stale_gradients.Add(stale.size());
  if (options_.counts_steps) record_.AddStep();
  replicas_.Complete(step + 1);
  return absl::OkStatus();
}

}  // namespace parasol
