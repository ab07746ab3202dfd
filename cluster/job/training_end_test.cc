#include "cluster/job/training_end.h"

#include <limits>
#include <optional>
#include <string>

#include "base/status_matchers.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TrainingEnd, IsTheFirstLimitThatIsReached) {
  struct Case {
    std::string name;
    std::optional<int64_t> steps;
    std::optional<double> epochs;
    std::optional<int64_t> want;
  };
  // 60000 examples in batches of 64: 937.5 batches are an epoch.
  const Case cases[] = {
      {"steps alone", 100, std::nullopt, 100},
      {"one epoch, rounded up", std::nullopt, 1, 938},
      {"each of two epochs has its last batch", std::nullopt, 2, 1876},
      {"part of an epoch", std::nullopt, 0.5, 469},
      {"steps come first", 100, 1, 100},
      {"epochs come first", 10000, 1, 938},
      {"no end", std::nullopt, std::nullopt, std::nullopt},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    job::Job job;
    job.mutable_train()->set_batch_size(64);
    if (c.steps) job.mutable_end()->set_steps(*c.steps);
    if (c.epochs) job.mutable_end()->set_epochs(*c.epochs);
    TrainingEnd end(job);
    EXPECT_OK(end.ObserveExamples(60000));
    EXPECT_EQ(end.step(), c.want);
  }
}

job::Job TwoEpochs() {
  job::Job job;
  job.mutable_train()->set_batch_size(10);
  job.mutable_end()->set_epochs(2);
  return job;
}

TEST(TrainingEnd, ASynchronousStepHasABatchOfEachReplica) {
  job::Job job = TwoEpochs();
  TrainingEnd one(job);
  EXPECT_OK(one.ObserveExamples(120));
  job.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(4);
  TrainingEnd four(job);
  EXPECT_OK(four.ObserveExamples(120));
  EXPECT_EQ(*four.step(), *one.step() / 4);
}

TEST(TrainingEnd, TheLastBatchOfEveryEpochIsAStep) {
  job::Job job;
  job.mutable_train()->set_batch_size(128);
  job.mutable_end()->set_epochs(3);
  TrainingEnd end(job);
  ASSERT_OK(end.ObserveExamples(2000, {2000}));
  EXPECT_EQ(end.step(), 48);
}

TEST(TrainingEnd, AnEpochHasTheBatchesOfEveryShard) {
  TrainingEnd end(TwoEpochs());
  ASSERT_OK(end.ObserveExamples(100, {51, 49}));
  EXPECT_THAT(end.ShardBatches(), ElementsAre(6, 5));
  EXPECT_EQ(end.step(), 2 * (6 + 5));
}

TEST(TrainingEnd, ASynchronousEpochEndsWithItsLargestShard) {
  job::Job job = TwoEpochs();
  job.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(2);
  TrainingEnd end(job);
  ASSERT_OK(end.ObserveExamples(100, {75, 25}));
  EXPECT_EQ(end.step(), 2 * 8);
}

TEST(TrainingEnd, ReplicasThatAllHaveTheWholeSetSeeEachExampleOnceTogether) {
  job::Job job = TwoEpochs();
  job.mutable_train()->set_auto_shard(job::Dataset::OFF);
  job.mutable_parameter_server()->mutable_synchronous()->set_total_replicas(2);
  TrainingEnd end(job);
  ASSERT_OK(end.ObserveExamples(100, {100, 100}));
  EXPECT_EQ(end.step(), 2 * 5);
}

durable::EpochsSeen Seen(int64_t step, double epochs, int64_t steps_per_epoch) {
  durable::EpochsSeen seen;
  seen.set_step(step);
  seen.set_epochs(epochs);
  seen.set_steps_per_epoch(steps_per_epoch);
  return seen;
}

// 1,000 examples.
TrainingEnd Resumed(double epochs, int batch_size,
                    const durable::EpochsSeen& seen, int64_t step) {
  job::Job job;
  job.mutable_end()->set_epochs(epochs);
  job.mutable_train()->set_batch_size(batch_size);
  TrainingEnd end(job);
  end.GoOn(seen, step);
  EXPECT_OK(end.ObserveExamples(1000));
  return end;
}

TEST(TrainingEnd, EpochsThatARunHasSeenCountAsTheyWere) {
  // 20 epochs of 10 steps; each of the other 10 has 4.
  const TrainingEnd second = Resumed(30, 250, Seen(0, 0, 10), 200);
  EXPECT_EQ(second.step(), 240);
  // Once more, in the 25th epoch: each of the other 5 has 20.
  const TrainingEnd third = Resumed(30, 50, second.Seen(), 220);
  EXPECT_EQ(third.step(), 320);
  EXPECT_EQ(third.Seen().epochs(), 25);
  EXPECT_EQ(third.Seen().step(), 220);
  // As it was.
  const TrainingEnd fourth = Resumed(30, 50, third.Seen(), 300);
  EXPECT_EQ(fourth.step(), 320);
  EXPECT_EQ(fourth.Seen().step(), 220);
  // In the middle of an epoch: half a step more is a step.
  EXPECT_EQ(Resumed(30, 250, Seen(0, 0, 10), 205).step(), 205 + 38);
}

TEST(TrainingEnd, ARunThatHasSeenMoreEpochsHasItsEndBehindIt) {
  EXPECT_LE(Resumed(20, 250, Seen(0, 0, 10), 250).step(), 250);
  EXPECT_EQ(Resumed(20, 100, Seen(0, 0, 10), 250).step(), 200);
}

TEST(TrainingEnd, EpochsOfARunAreNotKnownUntilTheyAreCounted) {
  // A checkpoint that says nothing: epochs had always as many steps as now, or
  // as many as its job's batches say.
  EXPECT_EQ(Resumed(30, 250, {}, 200).step(), 120);
  job::Job job;
  job.mutable_end()->set_epochs(30);
  job.mutable_train()->set_batch_size(250);
  TrainingEnd other(job);
  other.GoOn({}, 200, /*examples_per_step=*/100);
  EXPECT_OK(other.ObserveExamples(1000));
  EXPECT_EQ(other.step(), 240);
  TrainingEnd end(job);
  end.GoOn(Seen(100, 10, 20), 200);
  EXPECT_EQ(end.step(), std::nullopt);
  EXPECT_EQ(end.Seen().step(), 100);
  EXPECT_EQ(end.Seen().steps_per_epoch(), 20);
}

TEST(TrainingEnd, WhatNoChiefHasWrittenIsNotKnown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const durable::EpochsSeen& seen :
       {Seen(-1, 1, 10), Seen(201, 1, 10), Seen(0, -1, 10), Seen(0, nan, 10),
        Seen(0, 1e300, 10), Seen(0, 0, -1)}) {
    EXPECT_EQ(Resumed(30, 250, seen, 200).step(), 120) << seen.DebugString();
  }
}

TEST(TrainingEnd, WorkersThatSplitTheSetDifferentlyAreRefused) {
  TrainingEnd end(TwoEpochs());
  ASSERT_OK(end.ObserveExamples(100, {50, 50}));
  EXPECT_THAT(end.ObserveExamples(100, {60, 40}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("60, 40"), HasSubstr("50, 50"))));
  EXPECT_EQ(end.step(), 20);
}

TEST(TrainingEnd, AShardOfNothingIsRefused) {
  TrainingEnd end(TwoEpochs());
  EXPECT_THAT(end.ObserveExamples(100, {100, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a shard of the training set has 0")));
}

TEST(TrainingEnd, IsUnknownUntilAWorkerHasCountedTheExamples) {
  TrainingEnd end(TwoEpochs());
  EXPECT_EQ(end.step(), std::nullopt);
}

TEST(TrainingEnd, WorkersThatCountDifferentlyAreRefused) {
  TrainingEnd end(TwoEpochs());
  EXPECT_OK(end.ObserveExamples(100));
  EXPECT_THAT(end.ObserveExamples(101),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("101"), HasSubstr("100"))));
  EXPECT_EQ(end.step(), 20);
}

TEST(TrainingEnd, EpochsOfNothingAreRefused) {
  TrainingEnd end(TwoEpochs());
  EXPECT_THAT(end.ObserveExamples(0),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(TrainingEnd, CountsThatNoTrainingSetHasAreRefused) {
  TrainingEnd end(TwoEpochs());
  const int64_t huge = int64_t{1} << 62;
  EXPECT_THAT(end.ObserveExamples(huge),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(end.ObserveExamples(100, {huge, huge, huge, huge}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(end.step(), std::nullopt);
}

}  // namespace
}  // namespace parasol
