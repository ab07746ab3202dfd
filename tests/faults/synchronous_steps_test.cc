// Synchronous training goes on, and computes the same, whatever is lost: random
// schedules, each named by its seed.
//
//   bazel test //tests/faults:synchronous_steps_test
//       --test_arg=--schedules=100000 --test_arg=--first_seed=12345
//       --test_timeout=3600

#include <algorithm>
#include <cstdint>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "gtest/gtest.h"
#include "tests/faults/step_simulation.h"

ABSL_FLAG(uint64_t, schedules, 300, "How many random schedules to try.");
ABSL_FLAG(uint64_t, first_seed, 1, "The seed of the first one.");

namespace parasol {
namespace {

using Mutant = StepSimulation::Mutant;
using Options = StepSimulation::Options;
using Report = StepSimulation::Report;

Report RunSchedule(const Options& options) {
  return StepSimulation(options).Run();
}

// Schedules of many shapes: the seed decides.
Options ShapedBy(uint64_t seed) {
  Options options;
  options.seed = seed;
  options.workers = 1 + seed % 5;
  options.shards = 1 + seed / 5 % 4;
  options.replicas = 1 + seed / 20 % 4;
  options.wanted = options.replicas;
  options.kills = 3 + seed % 7;
  options.steps = 8;
  if (seed % 3 == 0) options.memory_bytes = 10;
  return options;
}

// Steps of which each variable is pushed in one of two passes.
Options InFragments(uint64_t seed) {
  Options options = ShapedBy(seed);
  options.fragments = 2;
  return options;
}

// Changes the options to one worker that nothing happens to.
Options Undisturbed(Options options) {
  options.workers = 1;
  options.kills = 0;
  options.restores = 0;
  options.checkpoints = 0;
  return options;
}

template <typename Check>
void ForEachSeed(Check check) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  for (uint64_t seed = first; seed < first + absl::GetFlag(FLAGS_schedules);
       ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SynchronousStepsTest, LostWorkersChangeNoBitAndNoCutIsMissed) {
  Report all;
  ForEachSeed([&](uint64_t seed) {
    const Options options = ShapedBy(seed);
    const Report report = RunSchedule(options);
    ASSERT_TRUE(report.complete) << report.stuck;
    ASSERT_EQ(report.values, RunSchedule(Undisturbed(options)).values);
    ASSERT_EQ(report.missed_cuts, 0);
    all.kills += report.kills;
    all.duplicates += report.duplicates;
    all.refusals += report.refusals;
    all.mixed_pulls += report.mixed_pulls;
    all.checkpoints += report.checkpoints;
  });
  // What the schedules are there for has happened in them.
  const int schedules = static_cast<int>(absl::GetFlag(FLAGS_schedules));
  EXPECT_GT(all.kills, schedules);
  EXPECT_GT(all.duplicates, schedules);
  EXPECT_GT(all.refusals, schedules);
  EXPECT_GT(all.mixed_pulls, 0);
  EXPECT_GT(all.checkpoints, schedules / 2);
}

TEST(SynchronousStepsTest, WithBackupsEveryStepIsCompleted) {
  ForEachSeed([](uint64_t seed) {
    Options options = ShapedBy(seed);
    options.wanted = std::max(1, options.replicas - 1);
    const Report report = RunSchedule(options);
    ASSERT_TRUE(report.complete) << report.stuck;
    ASSERT_EQ(report.missed_cuts, 0);
  });
}

TEST(SynchronousStepsTest, LostPsAndWorkersDoNotStopTraining) {
  int restores = 0;
  ForEachSeed([&](uint64_t seed) {
    Options options = ShapedBy(seed);
    options.restores = 1 + seed % 4;
    const Report report = RunSchedule(options);
    ASSERT_TRUE(report.complete) << report.stuck;
    restores += report.restores;
  });
  EXPECT_GT(restores, static_cast<int>(absl::GetFlag(FLAGS_schedules)));
}

TEST(SynchronousStepsTest, FragmentsAreAppliedOnceWhicheverWorkersAreLost) {
  Report all;
  ForEachSeed([&](uint64_t seed) {
    const Options options = InFragments(seed);
    const Report report = RunSchedule(options);
    ASSERT_TRUE(report.complete) << report.stuck;
    ASSERT_EQ(report.values, RunSchedule(Undisturbed(options)).values);
    ASSERT_EQ(report.missed_cuts, 0);
    all.kills += report.kills;
    all.duplicates += report.duplicates;
    all.earlier += report.earlier;
    all.checkpoints += report.checkpoints;
  });
  const int schedules = static_cast<int>(absl::GetFlag(FLAGS_schedules));
  EXPECT_GT(all.kills, schedules);
  EXPECT_GT(all.duplicates, schedules);
  EXPECT_GT(all.earlier, schedules / 4);
  EXPECT_GT(all.checkpoints, schedules / 2);
}

TEST(SynchronousStepsTest, LostPsAndBackupsDoNotStopFragments) {
  ForEachSeed([](uint64_t seed) {
    Options options = InFragments(seed);
    options.restores = seed % 4;
    options.wanted = std::max<int>(1, options.replicas - seed / 4 % 2);
    const Report report = RunSchedule(options);
    ASSERT_TRUE(report.complete) << report.stuck;
  });
}

// Returns true if one of 300 schedules does not end or misses a cut.
bool IsCaught(Mutant mutant, int fragments = 1) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Options options = ShapedBy(seed);
    options.fragments = fragments;
    options.restores = mutant == Mutant::kNoSecondPush || fragments > 1 ? 3 : 0;
    options.mutant = mutant;
    const Report report = RunSchedule(options);
    if (!report.complete || report.missed_cuts > 0) return true;
  }
  return false;
}

TEST(SynchronousStepsTest, ShardsWithoutTheValuesOfTheStepBeforeAreCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kNoPreviousValues));
}

TEST(SynchronousStepsTest, WorkersThatPushNothingAgainAreCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kNoSecondPush));
}

TEST(SynchronousStepsTest, ReplicasThatLackTheirEarlierFragmentsAreCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kNothingEarlier, /*fragments=*/2));
}

TEST(SynchronousStepsTest, WorkersThatWaitForAFragmentAloneAreCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kDeafPull, /*fragments=*/2));
}

TEST(SynchronousStepsTest, ACutThatAShardMayHavePassedIsCaught) {
  EXPECT_TRUE(IsCaught(Mutant::kEarlyCut));
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
