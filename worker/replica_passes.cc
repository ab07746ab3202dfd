#include "worker/replica_passes.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "worker/pass_seed.h"

namespace parasol {
namespace {

constexpr absl::Duration kRowsLogInterval = absl::Seconds(10);

void Scale(float weight, std::vector<float>& gradient) {
  if (weight == 1) return;
  for (float& element : gradient) element *= weight;
}

}  // namespace

ReplicaPasses::ReplicaPasses(const Options& options, Model& model,
                             ReplicaInput& input,
                             TrainingParameters& parameters,
                             AwaitPull await_pull, Clock& clock,
                             WorkerMetrics& metrics, TrainingReporter& reporter)
    : options_(options),
      model_(model),
      input_(input),
      parameters_(parameters),
      await_pull_(std::move(await_pull)),
      clock_(clock),
      metrics_(metrics),
      record_(options.non_finite_loss, options.points, clock, metrics,
              reporter),
      fragments_(model.fragments()) {
  for (Staged& staged : staged_) staged.batch = model.NewStagedBatch();
}

void ReplicaPasses::Abandon() {
  for (Staged& staged : staged_) {
    if (staged.rows != nullptr) staged.rows->Wait().IgnoreError();
    staged.rows = nullptr;
  }
  for (Sent& sent : sent_) sent.push->Wait().IgnoreError();
  sent_.clear();
  if (coming_ != nullptr) coming_->Wait().IgnoreError();
  coming_ = nullptr;
}

absl::Status ReplicaPasses::TakeValues(
    const std::vector<absl::Span<const float>>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (has_values_ && model_.variables()[i].frozen) continue;
    std::copy(values[i].begin(), values[i].end(), model_.HostValue(i).begin());
    RETURN_IF_ERROR(model_.Upload(i)) << model_.variables()[i].name;
  }
  has_values_ = true;
  return absl::OkStatus();
}

void ReplicaPasses::BeginStep(const std::vector<int>& replicas) {
  std::erase_if(gradients_, [&replicas](const auto& entry) {
    return std::count(replicas.begin(), replicas.end(), entry.first) == 0;
  });
  computed_.clear();
  progress_.clear();
  if (fragments_.empty()) return;
  // What the step has not pushed yet is not pushed again.
  for (auto& [replica, kept] : gradients_) {
    for (std::vector<float>& gradient : kept.variables) gradient.clear();
  }
}

void ReplicaPasses::KeepReaders(const std::vector<int>& replicas) {
  input_.Keep(replicas);
  // Their batches are the readers'.
  std::erase_if(progress_, [&replicas](const auto& entry) {
    return std::count(replicas.begin(), replicas.end(), entry.first) == 0;
  });
}

std::vector<size_t> ReplicaPasses::VariablesOfPass() const {
  if (!fragments_.empty()) return fragments_[pass_];
  std::vector<size_t> all;
  for (size_t i = 0; i < model_.variables().size(); ++i) {
    if (!model_.variables()[i].frozen) all.push_back(i);
  }
  return all;
}

TrainingParameters::Pending& ReplicaPasses::PullOfFragment(int64_t step) {
  if (coming_ != nullptr) return *coming_;
  TrainingParameters::PullRequest request;
  request.min_updates = step + 1;
  for (const size_t i : fragments_[pass_]) {
    request.targets.push_back({i, model_.HostValue(i)});
  }
  coming_ = parameters_.Pull(std::move(request));
  return *coming_;
}

absl::StatusOr<int64_t> ReplicaPasses::TakeFragment() {
  const auto pull = std::move(coming_);
  RETURN_IF_ERROR(pull->Wait()) << "pull of fragment " << pass_;
  for (const size_t i : fragments_[pass_]) {
    RETURN_IF_ERROR(model_.Upload(i)) << model_.variables()[i].name;
  }
  return pull->outcome().max_updates;
}

void ReplicaPasses::PullBehind(int64_t step) {
  if (options_.pulls_ahead && !fragments_.empty()) PullOfFragment(step);
}

// The next replica's rows come while one computes. A device may still be in the
// backward pass of the last step, and reads its batch: the next one takes the
// other place.
absl::Status ReplicaPasses::ComputeAll(int64_t step, size_t pass,
                                       const std::vector<int>& replicas) {
  pass_ = pass;
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
    PushEarlier(step, replicas[i]);
    RETURN_IF_ERROR(Compute(step, staged));
    computed_.insert(replicas[i]);
  }
  if (options_.parts != nullptr) first_staged_ += replicas.size();
  return absl::OkStatus();
}

void ReplicaPasses::PushEarlier(int64_t step, int replica) {
  Gradients& kept = gradients_[replica];
  kept.variables.resize(model_.variables().size());
  TrainingParameters::PushRequest request;
  for (size_t fragment = 0; fragment < pass_; ++fragment) {
    for (const size_t i : fragments_[fragment]) {
      if (!kept.variables[i].empty()) continue;
      kept.variables[i].assign(model_.variables()[i].elements(), 0);
      request.gradients.push_back({i, kept.variables[i]});
    }
  }
  Push(step, replica, std::move(request));
}

absl::StatusOr<ReplicaInput::Share> ReplicaPasses::ShareOf(int64_t step,
                                                           int replica) {
  const auto known = progress_.find(replica);
  if (known != progress_.end()) return known->second.share;
  const TrainingRecord::Timed timed(record_, StepPart::kInput);
  ASSIGN_OR_RETURN(const ReplicaInput::Share share,
                   input_.ShareOf(replica, step));
  if (!fragments_.empty()) progress_[replica].share = share;
  return share;
}

absl::Status ReplicaPasses::Stage(int64_t step, int replica, Staged& staged) {
  ASSIGN_OR_RETURN(const ReplicaInput::Share share, ShareOf(step, replica));
  if (options_.counts_records) {
    metrics_.corrupt_records.Add(input_.TakeSkippedRecords());
  }
  staged.replica = replica;
  staged.weight = share.weight;
  staged.has_examples = share.batch != nullptr && share.batch->size > 0;
  if (!staged.has_examples) return absl::OkStatus();
  {
    const TrainingRecord::Timed timed(record_, StepPart::kCompute);
    RETURN_IF_ERROR(model_.Stage(*share.batch, *staged.batch));
  }
  TrainingParameters::PullRequest request;
  request.min_updates = step;
  for (const StagedBatch::Rows& rows : staged.batch->rows()) {
    if (rows.ids.empty()) continue;
    request.rows.push_back({rows.table, rows.ids, rows.values});
  }
  if (!request.rows.empty()) staged.rows = parameters_.Pull(std::move(request));
  return absl::OkStatus();
}

absl::Status ReplicaPasses::FinishRows(int64_t step, Staged& staged) {
  const auto rows = std::move(staged.rows);
  if (rows == nullptr) return absl::OkStatus();
  {
    const TrainingRecord::Timed timed(record_, StepPart::kPull);
    RETURN_IF_ERROR(await_pull_(*rows, step, record_));
  }
  if (rows->outcome().max_updates > step) {
    LOG_EVERY(INFO, kRowsLogInterval)
        << "step " << step << ", replica " << staged.replica
        << ": some rows are of step " << rows->outcome().max_updates
        << " already: their tables will drop this gradient";
  }
  return absl::OkStatus();
}

absl::Status ReplicaPasses::Compute(int64_t step, Staged& staged) {
  const int replica = staged.replica;
  if (!staged.has_examples) {
    PushNothing(step, staged);
    PullBehind(step);
    return absl::OkStatus();
  }
  Gradients& kept = gradients_[replica];
  kept.variables.resize(model_.variables().size());
  kept.tables.resize(model_.tables().size());
  TrainingParameters::PushRequest pack;
  size_t pack_elements = 0;
  size_t left = fragments_.empty() ? 0 : fragments_[pass_].size();
  // The next replica's gradients lie in the model's own memory, too.
  const auto add_variable = [&](size_t variable,
                                absl::Span<const float> gradient) {
    std::vector<float>& copy = kept.variables[variable];
    copy.assign(gradient.begin(), gradient.end());
    Scale(staged.weight, copy);
    pack.gradients.push_back({variable, copy});
    pack_elements += gradient.size();
    // A pass may go on behind its fragment's last gradient.
    const bool is_last = left > 0 && --left == 0;
    if (!is_last && pack_elements < TrainingParameters::kPackElements) return;
    Push(step, replica, std::exchange(pack, {}));
    pack_elements = 0;
    if (is_last) PullBehind(step);
  };
  // A table is pushed without rows too: it counts the steps.
  const auto add_rows = [&](size_t table, absl::Span<const uint64_t> ids,
                            absl::Span<const float> gradients) {
    Gradients::Rows& copy = kept.tables[table];
    copy.ids.assign(ids.begin(), ids.end());
    copy.values.assign(gradients.begin(), gradients.end());
    Scale(staged.weight, copy.values);
    const auto counts = staged.batch->CountsOf(table, ids);
    copy.counts.assign(counts.begin(), counts.end());
    pack.rows.push_back({table, copy.ids, copy.values, copy.counts});
  };
  Expect(step, staged);
  BatchResult result;
  staged.batch->pass = pass_;
  {
    const TrainingRecord::Timed timed(record_, StepPart::kCompute);
    ASSIGN_OR_RETURN(
        result,
        model_.Gradients(*staged.batch, PassSeed(options_.seed, step, replica),
                         {.variable = add_variable, .rows = add_rows}));
  }
  if (!fragments_.empty()) {
    BatchResult& so_far = progress_[replica].result;
    so_far.Add(result);
    result = so_far;
    // Later fragments are not exchanged then, and the step never completes.
    RETURN_IF_ERROR(record_.CheckLoss(result));
  }
  // A replica may have been taken over behind its last examples.
  if (is_last_pass() && result.examples > 0) {
    RETURN_IF_ERROR(record_.AddResult(result, step));
  }
  if (options_.parts != nullptr) {
    PushPart(step, staged, std::move(pack.rows));
  } else {
    Push(step, replica, std::move(pack));
  }
  return absl::OkStatus();
}

void ReplicaPasses::PushNothing(int64_t step, const Staged& staged) {
  const int replica = staged.replica;
  Gradients& kept = gradients_[replica];
  kept.variables.resize(model_.variables().size());
  kept.tables.assign(model_.tables().size(), {});
  TrainingParameters::PushRequest request;
  for (size_t table = 0; table < kept.tables.size(); ++table) {
    request.rows.push_back({table, {}, {}});
  }
  Expect(step, staged);
  if (options_.parts != nullptr) {
    return PushPart(step, staged, std::move(request.rows));
  }
  for (const size_t i : VariablesOfPass()) {
    kept.variables[i].assign(model_.variables()[i].elements(), 0);
    request.gradients.push_back({i, kept.variables[i]});
  }
  Push(step, replica, std::move(request));
}

void ReplicaPasses::Push(int64_t step, int replica,
                         TrainingParameters::PushRequest request) {
  if (request.gradients.empty() && request.rows.empty()) return;
  request.sync = {.step = step, .replica = replica};
  sent_.push_back({replica, parameters_.Push(std::move(request))});
}

void ReplicaPasses::Expect(int64_t step, const Staged& staged) {
  if (options_.parts == nullptr) return;
  options_.parts->Expect({.step = step, .replica = staged.replica},
                         {.has_examples = staged.has_examples,
                          .weight = staged.weight,
                          .device = options_.device});
}

void ReplicaPasses::PushPart(
    int64_t step, const Staged& staged,
    std::vector<TrainingParameters::RowGradient> rows) {
  TrainingParameters::PushRequest request;
  request.rows = std::move(rows);
  request.sync = {.step = step, .replica = staged.replica};
  const TrainingRecord::Timed timed(record_, StepPart::kPush);
  sent_.push_back({staged.replica, parameters_.Push(std::move(request))});
}

// A shard that came in place of another may lack gradients that the other has
// acknowledged. Shards that have them count them once. They have none of those
// that stay on a device.
void ReplicaPasses::PushAgain(int64_t step) {
  for (const int replica : computed_) {
    const Gradients& kept = gradients_[replica];
    TrainingParameters::PushRequest request;
    const size_t on_host =
        options_.parts != nullptr ? 0 : kept.variables.size();
    for (size_t i = 0; i < on_host; ++i) {
      if (model_.variables()[i].frozen || kept.variables[i].empty()) continue;
      request.gradients.push_back({i, kept.variables[i]});
    }
    for (size_t i = 0; i < kept.tables.size(); ++i) {
      const Gradients::Rows& rows = kept.tables[i];
      request.rows.push_back({i, rows.ids, rows.values, rows.counts});
    }
    Push(step, replica, std::move(request));
  }
}

}  // namespace parasol
