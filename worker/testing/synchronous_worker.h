#ifndef PARASOL_WORKER_TESTING_SYNCHRONOUS_WORKER_H_
#define PARASOL_WORKER_TESTING_SYNCHRONOUS_WORKER_H_

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "worker/pass_seed.h"
#include "worker/sync_training_loop.h"
#include "worker/testing/fake_staged_batch.h"

// A worker of synchronous training whose input, model, parameters and chief are
// fakes.
namespace parasol {

// Batch n of shard r has the label 100 r + n.
class FakeInput : public InputPipeline {
 public:
  explicit FakeInput(const InputOptions& options)
      : label_(100 * options.shard + options.first_batch) {
    batch_.size = 1;
  }
  absl::StatusOr<std::unique_ptr<InputPipeline>> OpenAgain(
      const InputOptions& options) const override {
    return std::make_unique<FakeInput>(options);
  }
  int64_t total_examples() const override { return 1000; }
  absl::StatusOr<std::vector<int64_t>> ShardSizes(int shards) const override {
    return shard_sizes.empty() ? std::vector<int64_t>(shards, 100)
                               : shard_sizes;
  }
  absl::StatusOr<const Batch*> Next() override {
    batch_.labels = {static_cast<float>(label_++)};
    return &batch_;
  }

  std::vector<int64_t> shard_sizes;  // empty: 100 for each

 private:
  int32_t label_;
  Batch batch_;
};

// One variable of one element, x, and perhaps a table, of which a batch reads
// row 0 and the label's; the gradient is x / 3 + the label + the rows, so every
// value shows what it was made of.
class FakeModel : public Model {
 public:
  FakeModel() : variables_(1), next_(1), value_(1), gradient_(1) {
    variables_[0].name = "x";
    variables_[0].shape = {1};
  }
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::Span<float> HostValue(size_t) override { return absl::MakeSpan(next_); }
  absl::Status Upload(size_t) override {
    value_ = next_;
    return absl::OkStatus();
  }
  std::unique_ptr<StagedBatch> NewStagedBatch() override {
    return std::make_unique<FakeStagedBatch>();
  }
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    auto& fake = static_cast<FakeStagedBatch&>(staged);
    fake.batch = &batch;
    const auto label = static_cast<uint64_t>(batch.labels[0]);
    if (!tables_.empty()) fake.StageRows({0, 1 + label});
    return absl::OkStatus();
  }
  const std::vector<TableUse>& tables() const override { return tables_; }

  void RemoveVariable() { variables_.clear(); }
  void AddTable() { tables_.push_back({.name = "users", .width = 1}); }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    const auto& fake = static_cast<FakeStagedBatch&>(staged);
    const Batch& batch = *fake.batch;
    computed.push_back(absl::StrCat("x", value_[0], " b", batch.labels[0]));
    seeds.push_back(seed);
    gradient_[0] = value_[0] / 3 + batch.labels[0];
    for (const float row : fake.values) gradient_[0] += row;
    if (!variables_.empty()) sinks.variable(0, gradient_);
    if (tables_.empty()) return BatchResult{.examples = 1, .loss_sum = loss};
    row_gradients_ = fake.values;
    for (float& row : row_gradients_) row = row / 7 + gradient_[0] / 3;
    sinks.rows(0, fake.ids, row_gradients_);
    return BatchResult{.examples = 1, .loss_sum = loss};
  }
  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch&) override {
    return absl::UnimplementedError("not part of the loop");
  }

  std::vector<std::string> computed;
  std::vector<uint64_t> seeds;
  double loss = 0.5;

 private:
  std::vector<VariableSpec> variables_;
  std::vector<TableUse> tables_;
  std::vector<float> next_, value_, gradient_, row_gradients_;
};

// The x and the rows of a cluster: a step is complete when `to_aggregate`
// replicas' gradients are there.
class FakeShard {
 public:
  explicit FakeShard(size_t to_aggregate) : to_aggregate_(to_aggregate) {}

  // True if the gradient came in time.
  bool Push(int64_t step, int replica, float gradient,
            const std::map<uint64_t, float>& rows = {}) {
    absl::MutexLock lock(&mu_);
    ++pushes_;
    if (step < updates_) return false;
    EXPECT_EQ(step, updates_);
    held_[replica] = gradient;
    held_rows_[replica] = rows;
    if (held_.size() < to_aggregate_) return true;
    float sum = 0;
    for (const auto& [r, g] : held_) sum += g;
    value_ -= sum / to_aggregate_;
    UpdateRows();
    held_.clear();
    ++updates_;
    return true;
  }
  bool AwaitUpdates(int64_t updates, absl::Duration limit) {
    absl::MutexLock lock(&mu_);
    const auto reached = [this, updates]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return updates_ >= updates;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&reached), limit);
  }
  void AwaitHeld(int replica) {
    absl::MutexLock lock(&mu_);
    const auto is_held = [this, replica]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return held_.contains(replica);
    };
    mu_.Await(absl::Condition(&is_held));
  }
  void AwaitPushes(int count) {
    absl::MutexLock lock(&mu_);
    const auto came = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return pushes_ >= count;
    };
    mu_.Await(absl::Condition(&came));
  }
  float ReadRow(uint64_t id) {
    absl::MutexLock lock(&mu_);
    return rows_[id];
  }
  std::map<uint64_t, float> rows() {
    absl::MutexLock lock(&mu_);
    return rows_;
  }
  std::pair<float, int64_t> Read() {
    absl::MutexLock lock(&mu_);
    return {value_, updates_};
  }

 private:
  // Each row by the mean over the replicas that touch it.
  void UpdateRows() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::map<uint64_t, std::pair<float, int>> sums;
    for (const auto& [replica, gradients] : held_rows_) {
      for (const auto& [id, gradient] : gradients) {
        sums[id].first += gradient;
        ++sums[id].second;
      }
    }
    for (const auto& [id, sum] : sums) rows_[id] -= sum.first / sum.second;
    held_rows_.clear();
  }

  const size_t to_aggregate_;
  absl::Mutex mu_;
  float value_ ABSL_GUARDED_BY(mu_) = 1;
  int64_t updates_ ABSL_GUARDED_BY(mu_) = 0;
  int pushes_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int, float> held_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, float> rows_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::map<uint64_t, float>> held_rows_ ABSL_GUARDED_BY(mu_);
};

class FakeParameters : public TrainingParameters, public DeviceParts {
 public:
  explicit FakeParameters(FakeShard& shard) : shard_(shard) {}

  std::unique_ptr<Pending> Pull(PullRequest request) override {
    auto reply = std::make_unique<Reply>(*this, request.min_updates);
    reply->request = request;
    reply->is_pull = true;
    absl::MutexLock lock(&mu_);
    if (!request.rows.empty()) {
      row_pulls.push_back(request.min_updates);
      return reply;
    }
    variables_pulled += request.targets.size();
    reply->lag = std::exchange(pull_lag, 0);
    return reply;
  }
  void Expect(const SyncStep&, const DevicePart& part) override {
    absl::MutexLock lock(&mu_);
    expected.push_back(part);
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    std::map<uint64_t, float> rows;
    for (const RowGradient& table : request.rows) {
      for (size_t i = 0; i < table.ids.size(); ++i) {
        rows[table.ids[i]] = table.values[i];
      }
    }
    {
      absl::MutexLock lock(&mu_);
      tables_pushed += request.rows.size();
    }
    auto reply = std::make_unique<Reply>(*this, request.sync->step + 1);
    const float gradient =
        request.gradients.empty() ? 0 : request.gradients[0].values[0];
    reply->stale =
        !shard_.Push(request.sync->step, request.sync->replica, gradient, rows);
    return reply;
  }
  Awaited Unanswered() const override {
    return {.peers = {"ps/3"}, .last_loading = loading_at, .moves = moved};
  }
  void Stop() override { stopped = true; }

  std::atomic<int64_t> moved = 0;
  absl::Time loading_at = absl::InfinitePast();
  // How many updates the next pull's other shard is behind.
  int64_t pull_lag = 0;
  size_t tables_pushed = 0;
  size_t variables_pulled = 0;
  std::vector<DevicePart> expected;  // parts, in order
  std::vector<int64_t> row_pulls;    // the step of each pull of rows
  std::atomic<bool> stopped = false;

 private:
  class Reply : public Pending {
   public:
    Reply(FakeParameters& parameters, int64_t updates)
        : parameters_(parameters), updates_(updates) {}
    absl::Status Wait() override {
      if (parameters_.stopped) return absl::CancelledError("stopped");
      EXPECT_TRUE(WaitFor(absl::InfiniteDuration()));
      const auto [value, updates] = parameters_.shard_.Read();
      for (const Target& target : request.targets) target.values[0] = value;
      for (const RowTarget& rows : request.rows) {
        for (size_t i = 0; i < rows.ids.size(); ++i) {
          rows.values[i] = parameters_.shard_.ReadRow(rows.ids[i]);
        }
      }
      updates_ = updates;
      return absl::OkStatus();
    }
    bool WaitFor(absl::Duration limit) override {
      return parameters_.shard_.AwaitUpdates(updates_, limit);
    }
    Outcome outcome() const override {
      if (!is_pull) return {0, 0, stale};
      return {updates_ - lag, updates_, stale};
    }

    PullRequest request;
    bool is_pull = false;
    bool stale = false;
    int64_t lag = 0;

   private:
    FakeParameters& parameters_;
    int64_t updates_;
  };

  FakeShard& shard_;
  absl::Mutex mu_;  // several devices push at once; tests read when they don't
};

// Hands out what the test says, until `end` steps are done.
class FakeReplicas : public ReplicaSource {
 public:
  FakeReplicas(std::vector<int> replicas, int64_t end) {
    share_.version = 1;
    share_.replicas = std::move(replicas);
    share_.end_step = end;
  }
  void Assign(std::vector<int> replicas) {
    absl::MutexLock lock(&mu_);
    ++share_.version;
    share_.replicas = std::move(replicas);
  }
  absl::StatusOr<std::optional<ReplicaShare>> Await() override {
    absl::MutexLock lock(&mu_);
    const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return stopped_ || share_.completed_steps >= share_.end_step ||
             !share_.replicas.empty();
    };
    mu_.Await(absl::Condition(&decided));
    if (stopped_) return absl::CancelledError("stopped");
    if (share_.completed_steps >= share_.end_step) return std::nullopt;
    return share_;
  }
  absl::StatusOr<ReplicaShare> Now() override {
    absl::MutexLock lock(&mu_);
    if (stopped_) return absl::CancelledError("stopped");
    return share_;
  }
  void Complete(int64_t steps) override {
    absl::MutexLock lock(&mu_);
    share_.completed_steps = std::max(share_.completed_steps, steps);
  }
  void Pushed(int64_t steps) override {
    absl::MutexLock lock(&mu_);
    pushed_.push_back(steps);
  }
  void Stop() override {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }
  // Names the workers that the chief says are awaited.
  void SetAwaited(std::vector<std::string> awaited) {
    absl::MutexLock lock(&mu_);
    share_.awaited = std::move(awaited);
  }
  std::vector<int64_t> pushed() {
    absl::MutexLock lock(&mu_);
    return pushed_;
  }

 private:
  absl::Mutex mu_;
  ReplicaShare share_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<int64_t> pushed_ ABSL_GUARDED_BY(mu_);
};

// A worker with all that it needs but the cluster.
struct Worker {
  Worker(FakeShard& shard, std::vector<int> replicas, int64_t end,
         int total_replicas, Clock& clock = Clock::Real(),
         int64_t batch_size = 1)
      : parameters(shard),
        replicas(std::move(replicas), end),
        input(set, {.seed = 1,
                    .total_replicas = total_replicas,
                    .batch_size = batch_size}),
        reporter(clock),
        loop(options, model, input, parameters, this->replicas, clock, metrics,
             reporter) {}

  FakeInput set{{}};
  FakeModel model;
  FakeParameters parameters;
  FakeReplicas replicas;
  ReplicaInput input;
  MetricsRegistry registry;
  WorkerMetrics metrics{registry};
  TrainingReporter reporter;
  SyncTrainingLoop::Options options{.seed = 5,
                                    .step_timeout = absl::Seconds(20)};
  SyncTrainingLoop loop;
};

// A worker of synchronous training with several devices.
struct WorkerOfDevices {
  WorkerOfDevices(FakeShard& shard, std::vector<std::unique_ptr<FakeModel>> m,
                  std::vector<int> share, int64_t end, int total_replicas)
      : models(std::move(m)),
        parameters(shard),
        replicas(std::move(share), end) {
    for (const auto& model : models) {
      inputs.emplace_back(
          set,
          ReplicaInput::Options{
              .seed = 1, .total_replicas = total_replicas, .batch_size = 1});
      places.push_back({model.get(), &inputs.back()});
    }
  }

  absl::Status Run() {
    return SyncTrainingLoop(options, places, parameters, replicas,
                            Clock::Real(), metrics, reporter)
        .Run();
  }

  FakeInput set{{}};
  std::vector<std::unique_ptr<FakeModel>> models;
  std::deque<ReplicaInput> inputs;
  std::vector<SyncTrainingLoop::Place> places;
  FakeParameters parameters;
  FakeReplicas replicas;
  MetricsRegistry registry;
  WorkerMetrics metrics{registry};
  TrainingReporter reporter{Clock::Real()};
  SyncTrainingLoop::Options options{.seed = 5,
                                    .step_timeout = absl::Seconds(20)};
};

}  // namespace parasol

#endif  // PARASOL_WORKER_TESTING_SYNCHRONOUS_WORKER_H_
