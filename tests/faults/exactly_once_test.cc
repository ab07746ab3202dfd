// Every push is applied exactly once, whatever the network does: random
// schedules, each named by its seed.
//
//   bazel test //tests/faults:exactly_once_test --test_arg=--schedules=1000000
//       --test_arg=--first_seed=12345 --test_timeout=3600

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/rpc/protocol_limits.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "tests/faults/push_simulation.h"

ABSL_FLAG(uint64_t, schedules, 2000, "How many random schedules to try.");
ABSL_FLAG(uint64_t, first_seed, 1, "The seed of the first one.");

namespace parasol {
namespace {

using Mutant = PushSimulation::Mutant;
using Options = PushSimulation::Options;
using Report = PushSimulation::Report;

Report RunSchedule(const Options& options) {
  return PushSimulation(options).Run();
}

// Schedules of many shapes: the seed decides.
Options ShapedBy(uint64_t seed) {
  Options options;
  options.seed = seed;
  options.workers = 1 + seed % 4;
  options.lanes = 1 + seed / 4 % 3;
  options.message_operations = seed % 5 == 0 ? 1 : 4;
  options.stream_ends = seed % 3 == 0 ? 100 : 20;
  return options;
}

// Whether what the shard holds is what was acknowledged, each push once.
bool IsExact(const Report& report) {
  for (size_t i = 0; i < report.values.size(); ++i) {
    if (report.values[i] != -report.acknowledged[i]) return false;
  }
  return report.complete;
}

TEST(ExactlyOnceTest, TheSumAppliedIsTheSumAcknowledged) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t schedules = absl::GetFlag(FLAGS_schedules);
  Report all;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    const Report report = RunSchedule(ShapedBy(seed));
    ASSERT_TRUE(report.complete) << "seed " << seed;
    for (size_t i = 0; i < report.values.size(); ++i) {
      ASSERT_EQ(report.values[i], -report.acknowledged[i])
          << "seed " << seed << ", element " << i;
    }
    ASSERT_EQ(report.old_values, 0u) << "seed " << seed;
    all.push_pulls += report.push_pulls;
    all.sent_again += report.sent_again;
    all.late_deliveries += report.late_deliveries;
    all.duplicates += report.duplicates;
    all.restores += report.restores;
  }
  // What the schedules are there for has happened in them.
  EXPECT_GT(all.sent_again, schedules);
  EXPECT_GT(all.late_deliveries, schedules);
  EXPECT_GT(all.duplicates, schedules);
  EXPECT_GT(all.restores, schedules);
  EXPECT_GT(all.push_pulls, schedules);
}

// In memory, if there is such a directory: a disk would take its time for each
// segment.
std::string JournalDirectory() {
  const std::string parent =
      IsDirectory("/dev/shm") ? "/dev/shm" : testing::TempDir();
  return absl::StrCat(parent, "/exactly_once_test.", getpid());
}

TEST(ExactlyOnceTest, NothingThatWasAcknowledgedIsLostWithAJournal) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t schedules = (absl::GetFlag(FLAGS_schedules) + 9) / 10;
  size_t losses = 0;
  size_t duplicates = 0;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    Options options = ShapedBy(seed);
    options.restores = 10;
    options.journal_directory = JournalDirectory();
    const Report report = RunSchedule(options);
    ASSERT_TRUE(IsExact(report)) << "seed " << seed;
    ASSERT_EQ(report.old_values, 0u) << "seed " << seed;
    losses += report.restores;
    duplicates += report.duplicates;
  }
  EXPECT_GT(losses, schedules);
  EXPECT_GT(duplicates, schedules);
  EXPECT_OK(RemoveTree(JournalDirectory()));
}

TEST(ExactlyOnceTest, NothingIsAppliedTwiceWhenTheOutboxStopsAtTheWindow) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  for (uint64_t seed = first; seed < first + 10; ++seed) {
    SCOPED_TRACE(seed);
    const Report report = RunSchedule({.seed = seed,
                                       .workers = 2,
                                       .lanes = 3,
                                       .pushes = 4000,
                                       .message_operations = 50,
                                       .stream_ends = 5,
                                       .restores = 1,
                                       .starve_first_lane = true});
    EXPECT_EQ(report.max_ahead, kDedupWindow - 1);
    EXPECT_TRUE(IsExact(report));
    EXPECT_GT(report.duplicates, 0u);
  }
}

// How many of 100 schedules, whatever the flags, give a wrong sum, or values
// that are too old.
int Caught(Mutant mutant) {
  int caught = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Options options = ShapedBy(seed);
    options.mutant = mutant;
    if (mutant == Mutant::kIgnoresTheJournal ||
        mutant == Mutant::kNamesALaterPlace) {
      options.restores = 10;
      options.journal_directory = JournalDirectory();
    }
    const Report report = RunSchedule(options);
    EXPECT_TRUE(report.complete) << "seed " << seed;
    if (!IsExact(report) || report.old_values > 0) ++caught;
  }
  return caught;
}

TEST(ExactlyOnceTest, AShardThatDoesNotDeduplicateIsCaught) {
  EXPECT_GT(Caught(Mutant::kFreshIdentity), 90);
}

TEST(ExactlyOnceTest, ACheckpointWithoutTheWindowsIsCaught) {
  EXPECT_GT(Caught(Mutant::kForgetsWhenRestored), 50);
}

TEST(ExactlyOnceTest, ALostShardWithoutItsJournalIsCaught) {
  EXPECT_GT(Caught(Mutant::kIgnoresTheJournal), 90);
}

TEST(ExactlyOnceTest, ACutThatNamesALaterPlaceIsCaught) {
  EXPECT_GT(Caught(Mutant::kNamesALaterPlace), 20);
}

TEST(ExactlyOnceTest, ValuesOfBeforeAPushPullAreCaught) {
  EXPECT_GT(Caught(Mutant::kPullsAhead), 90);
}

TEST(ExactlyOnceTest, WithoutFaultsNothingIsSentTwice) {
  Options options = ShapedBy(absl::GetFlag(FLAGS_first_seed));
  options.stream_ends = 0;
  options.restores = 0;
  const Report report = RunSchedule(options);
  EXPECT_TRUE(IsExact(report));
  EXPECT_EQ(report.sent_again, 0u);
  EXPECT_EQ(report.duplicates, 0u);
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
