#include "worker/sync_training_loop.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/pass_seed.h"
#include "worker/testing/fake_staged_batch.h"
#include "worker/testing/fragment_worker.h"
#include "worker/testing/synchronous_worker.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

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

TEST(SyncTrainingLoop, GradientsThatStayOnTheDeviceArePushedByTheirWeights) {
  FakeShard shard(2);
  Worker worker(shard, {0, 1}, /*end=*/3, /*total_replicas=*/2, Clock::Real(),
                /*batch_size=*/2);
  worker.set.shard_sizes = {5, 3};
  worker.model.RemoveVariable();
  worker.options.parts = &worker.parameters;
  SyncTrainingLoop loop(worker.options, worker.model, worker.input,
                        worker.parameters, worker.replicas, Clock::Real(),
                        worker.metrics, worker.reporter);
  ASSERT_OK(loop.Run());
  std::vector<std::pair<bool, float>> parts;
  for (const DevicePart& part : worker.parameters.expected) {
    parts.emplace_back(part.has_examples, part.weight);
  }
  EXPECT_THAT(parts,
              ElementsAre(Pair(true, 1), Pair(true, 1), Pair(true, 4 / 3.f),
                          Pair(true, 2 / 3.f), Pair(true, 2), Pair(false, 0)));
  EXPECT_EQ(worker.metrics.steps.value(), 3);
}

TEST(SyncTrainingLoop, ValuesThatStayOnTheDeviceAreNotPulled) {
  const auto pulled = [](bool stay) {
    FakeShard shard(1);
    Worker worker(shard, {0}, /*end=*/3, /*total_replicas=*/1, Clock::Real());
    worker.options.values_stay_on_device = stay;
    SyncTrainingLoop loop(worker.options, worker.model, worker.input,
                          worker.parameters, worker.replicas, Clock::Real(),
                          worker.metrics, worker.reporter);
    EXPECT_OK(loop.Run());
    EXPECT_EQ(worker.metrics.steps.value(), 3);
    return worker.parameters.variables_pulled;
  };
  EXPECT_GT(pulled(/*stay=*/false), 0);
  EXPECT_EQ(pulled(/*stay=*/true), 0);
}

// Replica 1 has no examples in the last step.
TEST(SyncTrainingLoop, RowsArePushedBesideGradientsThatStayOnTheDevice) {
  const auto rows_after = [](bool stay) {
    FakeShard shard(2);
    Worker worker(shard, {0, 1}, /*end=*/3, /*total_replicas=*/2, Clock::Real(),
                  /*batch_size=*/2);
    worker.set.shard_sizes = {5, 3};
    worker.model.RemoveVariable();
    worker.model.AddTable();
    if (stay) worker.options.parts = &worker.parameters;
    SyncTrainingLoop loop(worker.options, worker.model, worker.input,
                          worker.parameters, worker.replicas, Clock::Real(),
                          worker.metrics, worker.reporter);
    EXPECT_OK(loop.Run());
    EXPECT_EQ(worker.parameters.tables_pushed, 6u);
    EXPECT_EQ(worker.parameters.expected.size(), stay ? 6 : 0);
    return shard.rows();
  };
  EXPECT_EQ(rows_after(/*stay=*/true), rows_after(/*stay=*/false));
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
  // Row 0, and the rows of 30 batches of 3 replicas.
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

TEST(SyncTrainingLoop, WhenAPsIsReplacedTheStepsGradientsArePushedAgain) {
  FakeShard shard(3);
  Worker worker(shard, {0, 1}, /*end=*/1, 3);
  worker.model.AddTable();
  std::thread thread([&] { EXPECT_OK(worker.loop.Run()); });
  shard.AwaitPushes(2);
  worker.parameters.moved = 1;
  shard.AwaitPushes(4);
  shard.Push(0, 2, 0);
  thread.join();
  EXPECT_EQ(worker.parameters.tables_pushed, 4u);
  EXPECT_EQ(worker.model.computed.size(), 2u);
}

// Replica 1 has no examples in step 1: it has not the rows of step 0.
TEST(SyncTrainingLoop, WhatIsPushedAgainOfAReplicaWithoutExamplesIsNothing) {
  const auto rows_after = [](int64_t moved) {
    FakeShard shard(3);
    Worker worker(shard, {0, 1}, /*end=*/2, 3);
    worker.set.shard_sizes = {2, 1, 1};
    worker.model.AddTable();
    std::thread thread([&] { EXPECT_OK(worker.loop.Run()); });
    shard.AwaitPushes(2);
    shard.Push(0, 2, 0);
    shard.AwaitPushes(5);
    worker.parameters.moved = moved;
    if (moved > 0) shard.AwaitPushes(7);
    shard.Push(1, 2, 0);
    thread.join();
    return shard.rows();
  };
  EXPECT_EQ(rows_after(/*moved=*/1), rows_after(/*moved=*/0));
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

TEST(SyncTrainingLoop, AStopLetsTheLastPushesBeAnswered) {
  FakeShard shard(2);
  std::vector<std::unique_ptr<FakeModel>> models;
  models.push_back(std::make_unique<FakeModel>());
  WorkerOfDevices worker(shard, std::move(models), {0}, 5, 2);
  worker.options.last_push_limit = absl::InfiniteDuration();
  std::thread thread([&] { EXPECT_TRUE(absl::IsCancelled(worker.Run())); });
  shard.AwaitHeld(0);
  worker.replicas.Stop();
  shard.Push(/*step=*/0, /*replica=*/1, 1);
  thread.join();
  EXPECT_EQ(worker.metrics.steps.value(), 1);
}

// Returns the message with which the worker gives up a step that another one
// does not complete.
std::string MessageOfALateStep(const std::vector<std::string>& awaited) {
  FakeShard shard(2);
  SimulatedClock clock;
  Worker worker(shard, {0}, 1, 2, clock);
  worker.replicas.SetAwaited(awaited);
  absl::Notification ended;
  absl::Status result;
  std::thread thread([&] {
    result = worker.loop.Run();
    ended.Notify();
  });
  // Its wait may begin after the first 20 seconds have passed.
  do {
    clock.Advance(absl::Seconds(20));
  } while (!ended.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
  thread.join();
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kUnavailable));
  return std::string(result.message());
}

TEST(SyncTrainingLoop, AStepThatIsNotCompleteEndsAtTheLimitNamingWhoIsBehind) {
  EXPECT_EQ(MessageOfALateStep({"worker/2"}),
            "step 0 was not complete in 20s: waited for the gradients of "
            "worker/2");
  EXPECT_EQ(MessageOfALateStep({}),
            "step 0 was not complete in 20s: waited for the answer of ps/3");
}

TEST(SyncTrainingLoop, AStepThatWaitsForAPsThatIsBeingLoadedGoesOn) {
  FakeShard shard(2);
  SimulatedClock clock;
  Worker worker(shard, {0}, 1, 2, clock);
  worker.parameters.loading_at = clock.Now() + absl::Hours(1);
  absl::Notification ended;
  std::thread thread([&] {
    EXPECT_THAT(worker.loop.Run(), StatusIs(absl::StatusCode::kUnavailable));
    ended.Notify();
  });
  shard.AwaitHeld(0);
  clock.Advance(absl::Hours(1));
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Milliseconds(50)));
  do {
    clock.Advance(absl::Seconds(20));
  } while (!ended.WaitForNotificationWithTimeout(absl::Milliseconds(10)));
  thread.join();
}

TEST(SyncTrainingLoop, TheChiefHearsOfThePushesOfAllReplicas) {
  FakeShard shard(2);
  Worker worker(shard, {1}, /*end=*/1, 2);
  std::thread thread([&] { EXPECT_OK(worker.loop.Run()); });
  shard.AwaitHeld(1);
  worker.replicas.Assign({0, 1});
  thread.join();
  EXPECT_THAT(worker.replicas.pushed(), ElementsAre(0, 1, 0, 1));
}

std::vector<std::unique_ptr<FakeModel>> Models(int devices) {
  std::vector<std::unique_ptr<FakeModel>> models;
  for (int i = 0; i < devices; ++i) {
    models.push_back(std::make_unique<FakeModel>());
    models.back()->AddTable();
  }
  return models;
}

TEST(SyncTrainingLoop, DevicesOfOneWorkerOrOfTwoEndWithTheSameBits) {
  constexpr int kReplicas = 6, kSteps = 30;
  struct Share {
    int devices;
    std::vector<int> replicas;
  };
  std::vector<std::pair<float, std::map<uint64_t, float>>> ends;
  for (const std::vector<Share>& shares :
       std::vector<std::vector<Share>>{{{1, {0, 1, 2, 3, 4, 5}}},
                                       {{6, {0, 1, 2, 3, 4, 5}}},
                                       {{2, {0, 1, 2}}, {2, {3, 4, 5}}},
                                       {{3, {1, 4, 5}}, {4, {0, 2, 3}}}}) {
    FakeShard shard(kReplicas);
    std::vector<std::unique_ptr<WorkerOfDevices>> workers;
    std::vector<std::thread> threads;
    for (const Share& share : shares) {
      workers.push_back(std::make_unique<WorkerOfDevices>(
          shard, Models(share.devices), share.replicas, kSteps, kReplicas));
      threads.emplace_back(
          [&worker = *workers.back()] { EXPECT_OK(worker.Run()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < shares.size(); ++i) {
      // Replicas are dealt out among the devices.
      const size_t devices = shares[i].devices;
      const size_t replicas = shares[i].replicas.size();
      for (size_t device = 0; device < devices; ++device) {
        EXPECT_EQ(workers[i]->models[device]->computed.size(),
                  kSteps * ((replicas + devices - 1 - device) / devices));
      }
      const TrainingReport report = workers[i]->reporter.Take();
      EXPECT_EQ(report.steps, kSteps);
      EXPECT_EQ(report.examples, kSteps * replicas);
      EXPECT_EQ(workers[i]->metrics.steps.value(), kSteps);
    }
    EXPECT_EQ(shard.Read().second, kSteps);
    ends.emplace_back(shard.Read().first, shard.rows());
  }
  for (const auto& end : ends) EXPECT_EQ(end, ends.front());
}

// Computes when as many others do.
class MeetingModel : public FakeModel {
 public:
  explicit MeetingModel(absl::Barrier* barrier) : barrier_(barrier) {}
  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    if (barrier_->Block()) delete barrier_;
    return FakeModel::Gradients(staged, seed, sinks);
  }

 private:
  absl::Barrier* const barrier_;
};

TEST(SyncTrainingLoop, DevicesComputeAtTheSameTime) {
  constexpr int kDevices = 3;
  auto* const barrier = new absl::Barrier(kDevices);
  std::vector<std::unique_ptr<FakeModel>> models;
  for (int i = 0; i < kDevices; ++i) {
    models.push_back(std::make_unique<MeetingModel>(barrier));
  }
  FakeShard shard(kDevices);
  WorkerOfDevices worker(shard, std::move(models), {0, 1, 2}, /*end=*/1,
                         kDevices);
  EXPECT_OK(worker.Run());
  EXPECT_EQ(shard.Read().second, 1);
}

TEST(SyncTrainingLoop, ReplicasThatAreAssignedMeanwhileAreDealtOutToDevices) {
  FakeShard shard(5);
  WorkerOfDevices worker(shard, Models(2), {3, 4}, /*end=*/1, 5);
  std::thread thread([&] { EXPECT_OK(worker.Run()); });
  shard.AwaitHeld(3);
  shard.AwaitHeld(4);
  worker.replicas.Assign({0, 1, 2, 3, 4});
  thread.join();
  EXPECT_THAT(worker.models[0]->computed,
              ElementsAre("x1 b300", "x1 b0", "x1 b200"));
  EXPECT_THAT(worker.models[1]->computed, ElementsAre("x1 b400", "x1 b100"));
}

TEST(SyncTrainingLoop, ADeviceWithoutAReplicaHasTheValuesOfTheStepLater) {
  FakeShard shard(2);
  WorkerOfDevices worker(shard, Models(2), {0}, /*end=*/1, 2);
  std::thread thread([&] { EXPECT_OK(worker.Run()); });
  shard.AwaitHeld(0);
  worker.replicas.Assign({0, 1});
  thread.join();
  // The only new one is the first device's.
  EXPECT_THAT(worker.models[0]->computed, ElementsAre("x1 b0", "x1 b100"));
  EXPECT_EQ(worker.models[1]->HostValue(0)[0], 1);
}

TEST(SyncTrainingLoop, WhatADeviceFailsWithEndsTheWorker) {
  FakeShard shard(3);
  WorkerOfDevices worker(shard, Models(3), {0, 1, 2}, /*end=*/1, 3);
  worker.models[2]->loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(worker.Run(), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_TRUE(worker.parameters.stopped);
}

TEST(SyncTrainingLoop, WhenAPsIsReplacedAllDevicesPushAgain) {
  FakeShard shard(4);
  WorkerOfDevices worker(shard, Models(2), {0, 1, 2}, /*end=*/1, 4);
  std::thread thread([&] { EXPECT_OK(worker.Run()); });
  shard.AwaitPushes(3);
  worker.parameters.moved = 1;
  shard.AwaitPushes(6);
  shard.Push(0, 3, 0);
  thread.join();
  EXPECT_EQ(worker.parameters.tables_pushed, 6u);
}

TEST(SyncTrainingLoop, ALossThatIsNotFiniteEndsTheJob) {
  FakeShard shard(1);
  Worker worker(shard, {0}, 1, 1);
  worker.model.loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(worker.loop.Run(), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST(FragmentStepsTest, EachFragmentsNewValuesComeBeforeTheNextPass) {
  Shards shards(1);
  FragmentWorker worker(shards, {0}, /*end=*/2, /*total_replicas=*/1);
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(worker.events.Take(),
              ElementsAre("pull x y at 0", "new x0", "new y0",  //
                          "push y0 of r0", "computed y of b0",  //
                          "pull y at 1", "new y0",              //
                          "push x0 of r0", "computed x of b0",  //
                          "pull x at 1", "new x0",              //
                          "push y1 of r0", "computed y of b1",  //
                          "pull y at 2", "new y1",              //
                          "push x1 of r0", "computed x of b1",  //
                          "pull x at 2", "new x1"));
  EXPECT_EQ(worker.metrics.steps.value(), 2);
  EXPECT_EQ(worker.reporter.Take().examples, 4);
}

TEST(FragmentStepsTest, ValuesMayBePulledBehindThePushOfTheFirstReplica) {
  Shards shards(2);
  FragmentWorker worker(shards, {0, 1}, /*end=*/1, /*total_replicas=*/2,
                        /*pulls_ahead=*/true);
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(
      worker.events.Take(),
      ElementsAre("pull x y at 0", "new x0", "new y0",                  //
                  "push y0 of r0", "pull y at 1", "computed y of b0",   //
                  "push y100 of r1", "computed y of b100", "new y100",  //
                  "push x0 of r0", "pull x at 1", "computed x of b0",   //
                  "push x100 of r1", "computed x of b100", "new x100"));
}

// It pushes nothing of before its first pass, but to a shard that may have been
// replaced.
TEST(FragmentStepsTest, AReplicaOfALostWorkerGoesOnInThePassOfTheOthers) {
  Shards shards(2);
  FragmentWorker worker(shards, {0}, /*end=*/1, /*total_replicas=*/2);
  std::thread other([&] {
    // The other worker is lost between its two fragments.
    worker.events.Await("computed y of b0");
    shards.Push(1, 0, 1, 7);
    worker.events.Await("computed x of b0");
    worker.replicas.Assign({0, 1});
  });
  ASSERT_OK(worker.loop.Run());
  other.join();
  EXPECT_THAT(worker.events.Take(),
              ElementsAre("pull x y at 0", "new x0", "new y0",      //
                          "push y0 of r0", "computed y of b0",      //
                          "pull y at 1", "new y7",                  //
                          "push x0 of r0", "computed x of b0",      //
                          "push y0 of r1",                          //
                          "push x100 of r1", "computed x of b100",  //
                          "pull x at 1", "new x100"));
}

// The shard of y is replaced when all have gone on to x.
TEST(FragmentStepsTest, AReplacedShardGetsWhatTheStepHasPushedAndNoMore) {
  Shards shards(2);
  FragmentWorker worker(shards, {0}, /*end=*/2, /*total_replicas=*/2);
  std::thread other([&] {
    worker.events.Await("computed y of b0");
    shards.Push(1, 0, 1, 7);
    worker.events.Await("computed x of b0");
    shards.Push(0, 0, 1, 8);
    worker.events.Await("computed y of b1");
    worker.events.Take();
    ++worker.parameters.moved;
    worker.events.Await("push y1 of r0");
    shards.Push(1, 1, 1, 9);
    worker.events.Await("computed x of b1");
    worker.events.Take();
    shards.Lose(1, 7);
    ++worker.parameters.moved;
    worker.events.Await("push y1 of r0");
    shards.Push(1, 1, 1, 9);
    shards.Push(0, 1, 1, 10);
  });
  ASSERT_OK(worker.loop.Run());
  other.join();
  // Both shards have had each gradient once.
  EXPECT_EQ(shards.Read(0), std::make_pair(0 + 8 + 1 + 10.f, int64_t{2}));
  EXPECT_EQ(shards.Read(1), std::make_pair(0 + 7 + 1 + 9.f, int64_t{2}));
}

// A cluster that comes back from its journals may have made a step in part.
TEST(FragmentStepsTest, AStepIsGoneOnWithOfWhichAFragmentWasMade) {
  Shards shards(1);
  shards.Push(1, 0, 0, 5);
  FragmentWorker worker(shards, {0}, /*end=*/1, /*total_replicas=*/1);
  ASSERT_OK(worker.loop.Run());
  EXPECT_THAT(worker.events.Take(),
              ElementsAre("pull x y at 0", "new x0", "new y5",  //
                          "push y0 of r0", "computed y of b0",  //
                          "pull y at 1", "new y5",              //
                          "push x0 of r0", "computed x of b0",  //
                          "pull x at 1", "new x0"));
  EXPECT_EQ(worker.metrics.stale_gradients.value(), 1);
}

// Others have taken the worker for lost.
TEST(FragmentStepsTest, AWorkerThatWasLeftBehindPullsAllAgain) {
  Shards shards(1);
  FragmentWorker worker(shards, {0}, /*end=*/4, /*total_replicas=*/1);
  worker.parameters.hook_at = "pull x at 1";
  worker.parameters.hook = [&] {
    for (const int64_t step : {1, 2}) {
      for (const size_t variable : {0, 1}) {
        shards.Push(variable, step, 0, 5);
      }
    }
    worker.replicas.Complete(3);
  };
  ASSERT_OK(worker.loop.Run());
  const std::vector<std::string> events = worker.events.Take();
  EXPECT_EQ(std::count(events.begin(), events.end(), "pull x y at 3"), 1);
  EXPECT_EQ(shards.Read(0).second, 4);
  EXPECT_EQ(shards.Read(1).second, 4);
}

}  // namespace
}  // namespace parasol
