// Workers of a program that make local steps, and exchange what these have
// changed with the ps.

#include "loop/peers/local_steps.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "loop/model.h"
#include "loop/optimizer.h"
#include "loop/peers/local_peers.h"
#include "loop/strategy.h"
#include "loop/training.h"
#include "loop/variable.h"
#include "ml/tape/operations.h"
#include "ml/tape/tape.h"
#include "parameters/training_parameters.h"
#include "storage/shard_entry.h"
#include "worker/store/parameter_store.h"

namespace parasol::loop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// A chief and a ps of a job, for workers of this process.
class Cluster : public TrainingParameters {
 public:
  explicit Cluster(int workers) : workers_(workers) {}

  // The first worker says what the job is.
  absl::Status Begin(ParameterStore& of_worker) {
    if (ps_ != nullptr) return absl::OkStatus();
    StoredVariables& variables = of_worker.variables();
    std::vector<VariableSpec> specs = variables.specs();
    for (VariableSpec& spec : specs) spec.initializer.mutable_zeros();
    ASSIGN_OR_RETURN(ps_, ParameterStore::Create(specs, of_worker.job()));
    for (size_t i = 0; i < variables.specs().size(); ++i) {
      ASSIGN_OR_RETURN(const absl::Span<const float> value,
                       variables.Read(i, kValueArray));
      RETURN_IF_ERROR(ps_->variables().Write(i, kValueArray, value));
    }
    return absl::OkStatus();
  }
  std::unique_ptr<Pending> Pull(PullRequest request) override {
    ++pulls_;
    return ps_->Pull(std::move(request));
  }
  std::unique_ptr<Pending> Push(PushRequest request) override {
    ++pushes_;
    for (const Gradient& one : request.gradients) {
      pushed_elements_ += static_cast<int64_t>(one.values.size());
    }
    return ps_->Push(std::move(request));
  }
  Awaited Unanswered() const override { return {}; }
  void Stop() override {}

  int workers() const { return workers_; }
  // Grants a step.
  int64_t Grant() { return granted_++; }
  int64_t granted() const { return granted_; }
  int pulls() const { return pulls_; }
  int pushes() const { return pushes_; }
  int64_t pushed_elements() const { return pushed_elements_; }
  std::vector<float> ValueOf(size_t variable) {
    const auto value = *ps_->variables().Read(variable, kValueArray);
    return std::vector<float>(value.begin(), value.end());
  }

 private:
  const int workers_;
  std::unique_ptr<ParameterStore> ps_;
  int64_t granted_ = 0;
  int pulls_ = 0;
  int pushes_ = 0;
  int64_t pushed_elements_ = 0;
};

// A worker of a Cluster.
class ClusterPeers : public LocalPeers {
 public:
  // `local_steps`: text; empty: none.
  ClusterPeers(Cluster& cluster, int place, int replicas,
               const std::string& local_steps)
      : LocalPeers(replicas), cluster_(cluster), place_(place) {
    if (!local_steps.empty()) local_steps_ = *ParseLocalSteps(local_steps);
  }

  int place() const override { return place_; }
  int num_places() const override { return cluster_.workers(); }
  using Peers::Begin;
  absl::StatusOr<int64_t> Begin(ParameterStore& store,
                                const std::vector<std::string>&) override {
    RETURN_IF_ERROR(cluster_.Begin(store));
    return cluster_.granted();
  }
  TrainingParameters* shared() override { return &cluster_; }
  const job::LocalSteps* local_steps() const override {
    return local_steps_ ? &*local_steps_ : nullptr;
  }
  absl::StatusOr<std::optional<int64_t>> NextIteration(int64_t) override {
    if (cluster_.granted() >= end()) return std::nullopt;
    return cluster_.Grant();
  }
  absl::StatusOr<bool> Commit(const Iteration& iteration,
                              ParameterStore&) override {
    committed_.push_back(iteration.step);
    examples_.push_back(iteration.examples);
    return !is_stopping_;
  }
  absl::StatusOr<bool> GoesOn() override { return !is_stopping_; }
  absl::Status End(const absl::Status& result) override { return result; }
  void Stop() override { is_stopping_ = true; }

  // What was committed.
  const std::vector<int64_t>& committed() const { return committed_; }
  const std::vector<int64_t>& examples() const { return examples_; }

 private:
  Cluster& cluster_;
  const int place_;
  std::optional<job::LocalSteps> local_steps_;
  bool is_stopping_ = false;
  std::vector<int64_t> committed_, examples_;
};

// A worker that runs a program of two optimizers: each iteration's gradients by
// the weights are `gradient`, and by the offset 1.
class Worker {
 public:
  struct Options {
    std::string local_steps = {};
    int64_t iterations = 12;
    int replicas = 1;
    std::string optimizer = "sgd { learning_rate: 1 }";
    std::vector<float> gradient = {1, 2};
  };

  Worker(Cluster& cluster, int place, Options options)
      : options_(std::move(options)) {
    auto peers = std::make_unique<ClusterPeers>(
        cluster, place, options_.replicas, options_.local_steps);
    peers_ = peers.get();
    strategy_ =
        *Strategy::WithPeers(std::vector<std::string>(options_.replicas, "cpu"),
                             {}, std::move(peers));
    const Strategy::Scope scope(*strategy_);
    weights_.emplace(*Variable::Create("weights", Tensor::Of({64, 32}, {2})));
    offset_.emplace(*Variable::Create("offset", Tensor::Of({16}, {1})));
    count_.emplace(*Variable::Create(
        "count", Zeros({1}),
        {.trainable = false, .aggregation = Aggregation::kOnlyFirstReplica}));
    of_weights_.emplace(
        *Optimizer::Create("of_weights", options_.optimizer, {*weights_}));
    of_offset_.emplace(*Optimizer::Create(
        "of_offset", "sgd { learning_rate: 0.5 }", {*offset_}));
    EXPECT_OK(strategy_->Keep("seen", &seen_));
    training_.emplace(*strategy_,
                      Training::Options{.iterations = options_.iterations});
  }

  bool Next() { return training_->Next(); }
  const absl::Status& status() const { return training_->status(); }
  int64_t iteration() const { return training_->iteration(); }
  absl::Status Run() {
    const PerReplica<Tensor> losses =
        strategy_->Run([&](ReplicaContext&) -> absl::StatusOr<Tensor> {
          const float share = 1.f / static_cast<float>(options_.replicas);
          GradientTape tape({.persistent = true});
          const Tensor slope = Tensor::Of(options_.gradient, {2});
          const Tensor loss =
              share * (ReduceSum(*weights_ * slope) + ReduceSum(*offset_));
          RETURN_IF_ERROR(of_weights_->Minimize(loss, tape));
          RETURN_IF_ERROR(of_offset_->Minimize(loss, tape));
          RETURN_IF_ERROR(count_->AssignAdd(Tensor::Of({1}, {1})));
          return loss;
        });
    RETURN_IF_ERROR(losses.status());
    losses_.push_back(losses.values()[0].scalar());
    training_->Report(8, losses_.back());
    seen_ += 8;
    return absl::OkStatus();
  }
  void RunAll() {
    while (Next()) ASSERT_OK(Run());
    ASSERT_OK(status());
  }
  // Makes so many iterations.
  void RunSome(int iterations) {
    for (int i = 0; i < iterations; ++i) {
      ASSERT_TRUE(Next()) << status();
      ASSERT_OK(Run());
    }
  }

  Strategy& strategy() { return *strategy_; }
  ClusterPeers& peers() { return *peers_; }
  std::vector<float> weights() const { return Read(*weights_); }
  const Variable& count() const { return *count_; }
  const std::vector<float>& losses() const { return losses_; }

 private:
  static std::vector<float> Read(const Variable& variable) {
    const Tensor value = variable.Read();
    EXPECT_OK(value.status());
    return std::vector<float>(value.values().begin(), value.values().end());
  }

  const Options options_;
  ClusterPeers* peers_ = nullptr;
  std::unique_ptr<Strategy> strategy_;
  std::optional<Variable> weights_, offset_, count_;
  std::optional<Optimizer> of_weights_, of_offset_;
  int64_t seen_ = 0;
  std::optional<Training> training_;
  std::vector<float> losses_;
};

// Numbers of the variables, in the order of their making.
constexpr size_t kWeights = 0, kOffset = 1, kCount = 2, kSeen = 4;

constexpr char kFourSteps[] = "steps: 4 outer { sgd { learning_rate: 1 } }";

TEST(LocalStepsTest, AnExchangeIsTheSumOfItsSteps) {
  Cluster cluster(1);
  Worker worker(
      cluster, 0,
      {.local_steps = "steps: 4 outer { sgd { learning_rate: 0.5 } }"});
  worker.RunSome(4);
  // The ps have none of it yet.
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(64, 32));
  EXPECT_THAT(worker.weights(), ElementsAre(60, 24));
  EXPECT_EQ(cluster.pushes(), 0);
  ASSERT_TRUE(worker.Next());
  EXPECT_EQ(worker.iteration(), 4);
  // Half of each difference; a variable that no optimizer has gets all.
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(62, 28));
  EXPECT_THAT(cluster.ValueOf(kOffset), ElementsAre(15));
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(4));
  EXPECT_EQ(cluster.ValueOf(kSeen)[0], 32);
  EXPECT_THAT(worker.weights(), ElementsAre(62, 28));
  EXPECT_EQ(cluster.pushes(), 1);
}

TEST(LocalStepsTest, TheSumsOfTwoWorkersAreExact) {
  Cluster cluster(2);
  Worker first(cluster, 0, {.local_steps = kFourSteps, .iterations = 22});
  Worker second(cluster, 1, {.local_steps = kFourSteps, .iterations = 22});
  // Each is in the middle of an exchange when the other one ends its own.
  first.RunSome(2);
  second.RunSome(3);
  first.RunSome(4);
  second.RunSome(5);
  first.RunAll();
  second.RunAll();
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(22));
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(64 - 22, 32 - 44));
  EXPECT_THAT(cluster.ValueOf(kOffset), ElementsAre(16 - 11));
  // The first one's own values are older.
  EXPECT_THAT(first.count().Read().values(), ElementsAre(22));
  // To the chief each exchange is a step; the last one has two iterations.
  EXPECT_EQ(cluster.granted(), 6);
  EXPECT_EQ(first.losses().size() + second.losses().size(), 22u);
  std::vector<int64_t> examples = first.peers().examples();
  examples.insert(examples.end(), second.peers().examples().begin(),
                  second.peers().examples().end());
  EXPECT_THAT(examples, testing::UnorderedElementsAre(32, 32, 32, 32, 32, 16));
}

// What another worker has done comes with the next exchange.
TEST(LocalStepsTest, AWorkerSeesOthersWhenItsExchangeBegins) {
  Cluster cluster(2);
  Worker first(cluster, 0, {.local_steps = kFourSteps, .iterations = 24});
  Worker second(cluster, 1, {.local_steps = kFourSteps, .iterations = 24});
  first.RunSome(1);
  second.RunSome(5);
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(60, 24));
  EXPECT_THAT(first.weights(), ElementsAre(63, 30));
  first.RunSome(3);
  EXPECT_THAT(first.weights(), ElementsAre(60, 24));
  ASSERT_TRUE(first.Next());
  EXPECT_THAT(first.weights(), ElementsAre(56, 16));
}

// An exchange of one step that is applied as it is, is the step.
TEST(LocalStepsTest, OneStepHasTheLossesOfThePs) {
  for (const std::string optimizer :
       {"adam { learning_rate: 0.125 }",
        "sgd { learning_rate: 0.25 momentum: 0.5 nesterov: true }",
        "sgd { learning_rate: 0.5 } global_clipnorm: 1",
        "lamb { learning_rate: 0.0625 }",
        "sgd { learning_rate: 0.5 } learning_rate_schedule { exponential_decay "
        "{ decay_steps: 3 decay_rate: 0.5 } }"}) {
    Worker::Options options = {.iterations = 20, .optimizer = optimizer};
    Cluster without(1);
    Worker one(without, 0, options);
    one.RunAll();
    options.local_steps = "steps: 1 outer { sgd { learning_rate: 1 } }";
    Cluster with(1);
    Worker other(with, 0, options);
    other.RunAll();
    EXPECT_THAT(other.losses(), Pointwise(FloatNear(1e-4), one.losses()))
        << optimizer;
    EXPECT_EQ(other.losses().size(), 20u);
    EXPECT_THAT(with.ValueOf(kCount), ElementsAre(20));
  }
}

TEST(LocalStepsTest, BytesFallByTheNumberOfSteps) {
  Cluster without(1);
  Worker one(without, 0, {.iterations = 40});
  one.RunAll();
  Cluster with(1);
  Worker other(with, 0,
               {.local_steps = "steps: 10 outer { sgd { learning_rate: 1 } }",
                .iterations = 40});
  other.RunAll();
  EXPECT_EQ(without.pushed_elements(), 10 * with.pushed_elements());
  EXPECT_EQ(with.pushes(), 4);
  EXPECT_THAT(with.ValueOf(kWeights), without.ValueOf(kWeights));
}

TEST(LocalStepsTest, ReplicasOfAWorkerMakeEachStepTogether) {
  Cluster cluster(1);
  Worker worker(cluster, 0, {.local_steps = kFourSteps, .replicas = 3});
  worker.RunAll();
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(12));
  EXPECT_NEAR(cluster.ValueOf(kWeights)[0], 64 - 12, 1e-4);
}

// A schedule goes by the iterations of all workers: one that begins with a late
// exchange has its rate.
TEST(LocalStepsTest, AScheduleGoesByTheIterationsOfAllWorkers) {
  Cluster cluster(2);
  const Worker::Options options = {
      .local_steps = kFourSteps,
      .iterations = 24,
      .optimizer =
          "sgd { learning_rate: 8 } learning_rate_schedule { "
          "piecewise_constant_decay { boundary: [4, 6] value: [4, 1] "
          "} }",
      .gradient = {1, 0}};
  Worker first(cluster, 0, options);
  Worker second(cluster, 1, options);
  first.RunSome(1);
  EXPECT_THAT(first.weights()[0], 64 - 8);
  second.RunSome(1);
  EXPECT_EQ(second.iteration(), 4);
  const float of_first = second.weights()[0];
  second.RunSome(3);
  const float of_all = second.weights()[0];
  // A boundary belongs to the values before it, as in Keras.
  EXPECT_EQ(of_first, 64 - 8);
  EXPECT_EQ(of_all, of_first - 4 - 4 - 1);
}

// An outer optimizer with momentum must not move what nothing has changed.
TEST(LocalStepsTest, WhatWasNotChangedIsNotPushed) {
  Cluster cluster(1);
  Worker worker(
      cluster, 0,
      {.local_steps =
           "steps: 2 outer { sgd { learning_rate: 1 momentum: 0.5 } }"});
  worker.RunSome(2);
  ASSERT_TRUE(worker.Next());
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(62, 28));
  ASSERT_TRUE(worker.Next());
  ASSERT_TRUE(worker.Next());
  EXPECT_EQ(cluster.pushes(), 2);
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(62, 28));
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(2));
}

// Two workers' moving means would overshoot if their changes were added.
TEST(LocalStepsTest, MovingStatisticsAreAveraged) {
  Cluster cluster(2);
  struct Part {
    std::unique_ptr<Strategy> strategy;
    std::optional<Model> model;
    std::optional<Optimizer> optimizer;
    std::optional<Training> training;
    Tensor mean() const {
      for (const Variable& variable : model->variables()) {
        if (variable.name() == "m/batch_normalization_0/moving_mean") {
          return variable.Read();
        }
      }
      return Tensor::Error(absl::NotFoundError("moving_mean"));
    }
  };
  std::vector<Part> parts(2);
  for (int place = 0; place < 2; ++place) {
    Part& part = parts[place];
    part.strategy = *Strategy::WithPeers(
        {"cpu"}, {},
        std::make_unique<ClusterPeers>(
            cluster, place, 1, "steps: 2 outer { sgd { learning_rate: 1 } }"));
    const Strategy::Scope scope(*part.strategy);
    part.model.emplace(*Model::Create(
        "m",
        "input_shape: 1 layer { batch_normalization { momentum: 0.5 } } "
        "layer { dense { units: 1 } }"));
    part.optimizer.emplace(
        *Optimizer::Create("sgd", "sgd {}", part.model->trainable_variables()));
    part.training.emplace(*part.strategy, Training::Options{.iterations = 8});
  }
  const auto run = [&](int place, float mean) {
    Part& part = parts[place];
    ASSERT_TRUE(part.training->Next()) << part.training->status();
    ASSERT_OK(part.strategy->Run([&](ReplicaContext&) {
      GradientTape tape;
      const Tensor x = Tensor::Of({mean - 1, mean + 1}, {2, 1});
      const Tensor y = part.model->Call(x, {.training = true});
      return part.optimizer->Minimize(ReduceSum(y), tape);
    }));
  };
  for (int step = 0; step < 2; ++step) {
    run(0, 16);
    run(1, 64);
  }
  EXPECT_EQ(parts[0].mean().scalar(), 12);
  EXPECT_EQ(parts[1].mean().scalar(), 48);
  ASSERT_TRUE(parts[0].training->Next());
  ASSERT_TRUE(parts[1].training->Next());
  EXPECT_EQ(parts[1].mean().scalar(), 30);
}

// A layer's factor is the local steps', and not once more the exchange's.
TEST(LocalStepsTest, AFactorOfTheRateCountsOnce) {
  Cluster cluster(1);
  const auto strategy = *Strategy::WithPeers(
      {"cpu"}, {},
      std::make_unique<ClusterPeers>(
          cluster, 0, 1, "steps: 2 outer { sgd { learning_rate: 1 } }"));
  const Strategy::Scope scope(*strategy);
  const Model model = *Model::Create(
      "m",
      "input_shape: 1 layer { dense { units: 1 kernel_initializer { zeros {} } "
      "} learning_rate_multiplier: 0.25 }");
  const Optimizer sgd = *Optimizer::Create("sgd", "sgd { learning_rate: 1 }",
                                           model.trainable_variables());
  Training training(*strategy, {.iterations = 4});
  while (training.Next()) {
    ASSERT_OK(strategy->Run([&](ReplicaContext&) {
      GradientTape tape;
      return sgd.Minimize(ReduceSum(model.Call(Ones({1, 1}))), tape);
    }));
  }
  ASSERT_OK(training.status());
  EXPECT_THAT(cluster.ValueOf(0), ElementsAre(-1));
}

TEST(LocalStepsTest, AWorkerIsToldToStopWithinAnExchange) {
  Cluster cluster(1);
  Worker worker(cluster, 0, {.local_steps = kFourSteps});
  worker.RunSome(6);
  worker.strategy().Stop();
  EXPECT_FALSE(worker.Next());
  EXPECT_THAT(worker.status(), StatusIs(absl::StatusCode::kCancelled));
  // What it had done since its exchange is another worker's to do.
  EXPECT_THAT(worker.peers().committed(), ElementsAre(1));
  EXPECT_THAT(cluster.ValueOf(kWeights), ElementsAre(60, 24));
}

TEST(LocalStepsTest, AValueThatIsNotFiniteIsNotExchanged) {
  Cluster cluster(1);
  Worker worker(cluster, 0,
                {.local_steps = kFourSteps,
                 .optimizer = "sgd { learning_rate: 3e38 }",
                 .gradient = {-1, 0}});
  worker.RunSome(4);
  EXPECT_FALSE(worker.Next());
  EXPECT_THAT(worker.status(),
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("variable weights is inf at element 0 after "
                                 "local steps: nothing was exchanged")));
  EXPECT_EQ(cluster.pushes(), 0);
}

// The first values and what comes between exchanges are the ps'.
TEST(LocalStepsTest, OutsideOfIterationsVariablesAreThePs) {
  Cluster cluster(1);
  Worker worker(cluster, 0, {.local_steps = kFourSteps, .iterations = 4});
  ASSERT_OK(worker.strategy().Start());
  EXPECT_THAT(worker.Run(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("optimizer of_weights makes local steps, and "
                                 "updates outside of an iteration")));
  EXPECT_EQ(cluster.pushes(), 0);
  ASSERT_OK(worker.count().AssignAdd(Tensor::Of({100}, {1})));
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(100));
  worker.RunAll();
  EXPECT_THAT(cluster.ValueOf(kCount), ElementsAre(104));
  EXPECT_THAT(worker.count().Read().values(), ElementsAre(104));
}

TEST(LocalStepsTest, AWorkerThatComesBackCountsIterations) {
  Cluster cluster(1);
  Worker before(cluster, 0, {.local_steps = kFourSteps, .iterations = 10});
  before.RunSome(5);
  Worker after(cluster, 0, {.local_steps = kFourSteps, .iterations = 10});
  ASSERT_TRUE(after.Next());
  // The chief of this test grants nothing again.
  EXPECT_EQ(after.iteration(), 8);
  EXPECT_EQ(after.strategy().committed(), 8);
  EXPECT_THAT(after.weights(), ElementsAre(60, 24));
}

TEST(LocalStepsTest, WrongProgramsAreToldWhatIsWrong) {
  Cluster cluster(1);
  Worker worker(
      cluster, 0,
      {.local_steps = kFourSteps, .optimizer = "sgd {} ema { decay: 0.9 }"});
  EXPECT_FALSE(worker.Next());
  EXPECT_THAT(worker.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--local_steps: optimizer of_weights"),
                             HasSubstr("local steps are a worker's own"))));

  const auto strategy = *Strategy::WithPeers(
      {"cpu"}, {}, std::make_unique<ClusterPeers>(cluster, 0, 1, kFourSteps));
  EXPECT_THAT(strategy->Run([](ReplicaContext&) {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("before there is a Training")));
}

}  // namespace
}  // namespace parasol::loop
