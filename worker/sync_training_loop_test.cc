#include "worker/sync_training_loop.h"

#include <algorithm>
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
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pass_seed.h"
#include "worker/testing/fake_staged_batch.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

  // Whether it came in time.
  bool Push(int64_t step, int replica, float gradient,
            const std::map<uint64_t, float>& rows = {}) {
    absl::MutexLock lock(&mu_);
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
  std::map<int, float> held_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, float> rows_ ABSL_GUARDED_BY(mu_);
  std::map<int, std::map<uint64_t, float>> held_rows_ ABSL_GUARDED_BY(mu_);
};

class FakeParameters : public ParameterClient {
 public:
  explicit FakeParameters(FakeShard& shard) : shard_(shard) {}

  std::unique_ptr<Pending> Pull(PullRequest request) override {
    auto reply = std::make_unique<Reply>(*this, request.min_updates);
    reply->request = request;
    if (!request.rows.empty()) {
      row_pulls.push_back(request.min_updates);
      return reply;
    }
    reply->lag = std::exchange(pull_lag, 0);
    return reply;
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    std::map<uint64_t, float> rows;
    for (const RowGradient& table : request.rows) {
      ++tables_pushed;
      for (size_t i = 0; i < table.ids.size(); ++i) {
        rows[table.ids[i]] = table.values[i];
      }
    }
    auto reply = std::make_unique<Reply>(*this, request.sync->step + 1);
    const float gradient =
        request.gradients.empty() ? 0 : request.gradients[0].values[0];
    reply->stale =
        !shard_.Push(request.sync->step, request.sync->replica, gradient, rows);
    return reply;
  }
  absl::Status Update(const wire::GetPlacementResponse&) override {
    return absl::OkStatus();
  }
  void Stop() override { stopped = true; }

  // How many updates the next pull's other shard is behind.
  int64_t pull_lag = 0;
  size_t tables_pushed = 0;
  std::vector<int64_t> row_pulls;  // the step of each pull of rows
  bool stopped = false;

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
      if (request.targets.empty() && request.rows.empty()) {
        return {0, 0, stale};
      }
      return {updates_ - lag, updates_, stale};
    }

    PullRequest request;
    bool stale = false;
    int64_t lag = 0;

   private:
    FakeParameters& parameters_;
    int64_t updates_;
  };

  FakeShard& shard_;
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
  void Stop() override {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
  }

 private:
  absl::Mutex mu_;
  ReplicaShare share_ ABSL_GUARDED_BY(mu_);
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
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

TEST(SyncTrainingLoop, EachReplicaHasABatchOfItsOwnInEachStep) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/2, /*total_replicas=*/2);
  ASSERT_OK(worker.loop.Run());
  const float after_one = 1 - (1.f / 3 + 0 + 1.f / 3 + 100) / 2;
  EXPECT_THAT(
      worker.model.computed,
      ElementsAre("x1 b0", "x1 b100", absl::StrCat("x", after_one, " b1"),
                  absl::StrCat("x", after_one, " b101")));
  EXPECT_EQ(worker.metrics.steps.value(), 2);
  EXPECT_EQ(worker.metrics.stale_gradients.value(), 0);
  EXPECT_EQ(worker.reporter.Take().examples, 4);
}

TEST(SyncTrainingLoop, AStepsMeanIsThatOverItsExamples) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/1, /*total_replicas=*/2, Clock::Real(),
                /*batch_size=*/4);
  worker.set.shard_sizes = {3, 1};
  ASSERT_OK(worker.loop.Run());
  EXPECT_FLOAT_EQ(shard.Read().first,
                  1 - (3 * (1.f / 3 + 0) + 1 * (1.f / 3 + 100)) / 4);
}

TEST(SyncTrainingLoop, AReplicaThatHasNoBatchLeftInAnEpochPushesNothingOfIt) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/4, /*total_replicas=*/2);
  worker.set.shard_sizes = {2, 1};
  worker.model.AddTable();
  ASSERT_OK(worker.loop.Run());
  std::vector<std::string> batches;
  for (const std::string& computed : worker.model.computed) {
    batches.push_back(computed.substr(computed.find('b')));
  }
  // The second epoch begins with both replicas.
  EXPECT_THAT(batches, ElementsAre("b0", "b100", "b1", "b2", "b101", "b3"));
  EXPECT_EQ(shard.Read().second, 4);
  EXPECT_EQ(worker.parameters.tables_pushed, 8u);
}

TEST(SyncTrainingLoop, TheOnlyReplicaWithExamplesMakesTheWholeStep) {
  FakeShard shard(2);
  shard.Push(0, 0, 0);
  shard.Push(0, 1, 0);
  Worker worker(shard, {0, 1}, /*end=*/2, /*total_replicas=*/2);
  worker.set.shard_sizes = {2, 1};
  worker.replicas.Complete(1);
  ASSERT_OK(worker.loop.Run());
  EXPECT_FLOAT_EQ(shard.Read().first, 1 - (1.f / 3 + 1));
}

TEST(SyncTrainingLoop, EveryTableCountsTheStep) {
  FakeShard shard(1);
  Worker worker(shard, {0, 1}, /*end=*/3, /*total_replicas=*/2);
  worker.model.AddTable();
  ASSERT_OK(worker.loop.Run());
  // One of the two replicas is a backup: its gradients are pushed, too.
  EXPECT_EQ(worker.parameters.tables_pushed, 6u);
}

TEST(SyncTrainingLoop, RowsAreThoseOfTheStep) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/2, /*total_replicas=*/2);
  worker.model.AddTable();
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(worker.parameters.row_pulls, ElementsAre(0, 0, 1, 1));
}

TEST(SyncTrainingLoop, AModelOfTablesAloneIsTrainedToTheEnd) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/3, /*total_replicas=*/2);
  worker.model.RemoveVariable();
  worker.model.AddTable();
  ASSERT_OK(worker.loop.Run());
  EXPECT_EQ(shard.Read().second, 3);
  EXPECT_EQ(worker.metrics.stale_gradients.value(), 0);
  EXPECT_THAT(worker.parameters.row_pulls, ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(SyncTrainingLoop, WhatIsRandomDependsOnStepAndReplicaAlone) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/2, /*total_replicas=*/2);
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(worker.model.seeds,
              ElementsAre(PassSeed(5, 0, 0), PassSeed(5, 0, 1),
                          PassSeed(5, 1, 0), PassSeed(5, 1, 1)));
}

TEST(SyncTrainingLoop, OneWorkerOrThreeEndWithTheSameBits) {
  std::vector<float> values;
  std::vector<std::map<uint64_t, float>> rows;
  for (const std::vector<std::vector<int>>& shares :
       std::vector<std::vector<std::vector<int>>>{
           {{0, 1, 2}}, {{2}, {0}, {1}}, {{0, 2}, {1}}}) {
    FakeShard shard(3);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::thread> threads;
    for (const std::vector<int>& share : shares) {
      workers.push_back(std::make_unique<Worker>(shard, share, 30, 3));
      workers.back()->model.AddTable();
      threads.emplace_back(
          [&worker = *workers.back()] { EXPECT_OK(worker.loop.Run()); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(shard.Read().second, 30);
    values.push_back(shard.Read().first);
    rows.push_back(shard.rows());
  }
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[0], values[2]);
  // Row 0, and those of 30 batches of 3 replicas.
  EXPECT_EQ(rows[0].size(), 91u);
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(rows[0], rows[2]);
}

TEST(SyncTrainingLoop, AReplicaThatIsAssignedMeanwhileUsesTheStepsOwnValues) {
  FakeShard shard(2);
  Worker worker(shard, {1}, /*end=*/1, 2);
  std::thread thread([&] { EXPECT_OK(worker.loop.Run()); });
  shard.AwaitHeld(1);
  worker.replicas.Assign({0, 1});
  thread.join();
  EXPECT_THAT(worker.model.computed, ElementsAre("x1 b100", "x1 b0"));
  EXPECT_EQ(shard.Read().second, 1);
}

TEST(SyncTrainingLoop, OneThatJoinsGoesOnAtTheClustersStep) {
  FakeShard shard(1);
  for (int step = 0; step < 7; ++step) shard.Push(step, 0, 0);
  Worker worker(shard, {0}, /*end=*/9, 1);
  worker.replicas.Complete(5);  // what the chief knew
  ASSERT_OK(worker.loop.Run());
  ASSERT_EQ(worker.model.computed.size(), 2u);
  EXPECT_THAT(worker.model.computed[0], "x1 b7");
}

TEST(SyncTrainingLoop, ValuesOfTwoStepsArePulledAgain) {
  FakeShard shard(1);
  shard.Push(0, 0, 0);
  Worker worker(shard, {0}, 2, 1);
  worker.parameters.pull_lag = 1;
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(worker.model.computed, ElementsAre("x1 b1"));
  EXPECT_EQ(worker.parameters.pull_lag, 0);
}

TEST(SyncTrainingLoop, AGradientThatCameTooLateIsCountedAndTheNextStepTaken) {
  FakeShard shard(1);
  Worker worker(shard, {0, 1}, /*end=*/2, 2);  // one of them is a backup
  ASSERT_OK(worker.loop.Run());
  EXPECT_EQ(worker.metrics.stale_gradients.value(), 2);
  EXPECT_EQ(shard.Read().second, 2);
}

TEST(SyncTrainingLoop, StopEndsAStepThatOthersDoNotComplete) {
  FakeShard shard(2);
  Worker worker(shard, {0}, 1, 2);
  std::thread thread([&] {
    EXPECT_THAT(worker.loop.Run(), StatusIs(absl::StatusCode::kCancelled));
  });
  shard.AwaitHeld(0);
  worker.replicas.Stop();
  thread.join();
  EXPECT_TRUE(worker.parameters.stopped);
}

TEST(SyncTrainingLoop, AStepThatOthersDoNotCompleteEndsAtTheLimitByItsNumber) {
  FakeShard shard(2);
  SimulatedClock clock;
  Worker worker(shard, {0}, 1, 2, clock);
  absl::Notification ended;
  std::thread thread([&] {
    EXPECT_THAT(worker.loop.Run(), StatusIs(absl::StatusCode::kUnavailable,
                                            HasSubstr("step 0 was not")));
    ended.Notify();
  });
  // Its wait may begin after the first 20 seconds have passed.
  do {
    clock.Advance(absl::Seconds(20));
  } while (!ended.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
  thread.join();
}

TEST(SyncTrainingLoop, ALossThatIsNotFiniteEndsTheJob) {
  FakeShard shard(1);
  Worker worker(shard, {0}, 1, 1);
  worker.model.loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(worker.loop.Run(), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace parasol
