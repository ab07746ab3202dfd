// Nothing that a shard with a standby has acknowledged is lost or doubled when
// its process, the standby's, the stream between them or the chief is lost:
// random schedules, each named by its seed.
//
//   bazel test //tests/faults:standby_test --test_arg=--schedules=100000
//       --test_arg=--first_seed=12345 --test_timeout=3600

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "tests/faults/standby_simulation.h"

ABSL_FLAG(uint64_t, schedules, 120, "How many random schedules to try.");
ABSL_FLAG(uint64_t, first_seed, 1, "The seed of the first one.");

namespace parasol {
namespace {

using Mutant = StandbySimulation::Mutant;
using Options = StandbySimulation::Options;
using Report = StandbySimulation::Report;

// Schedules of many shapes: the seed decides.
Options OptionsOf(uint64_t seed) {
  Options options;
  options.seed = seed;
  options.workers = 1 + seed % 3;
  options.lanes = 1 + seed / 3 % 2;
  options.stream_ends = seed % 2 == 0 ? 60 : 15;
  options.cuts = seed % 5 == 0 ? 20 : 5;
  options.chief_losses = seed % 4 == 0 ? 20 : 3;
  options.makes = seed % 7 == 0 ? 50 : 1000;
  return options;
}

// In memory, if there is such a directory.
std::string JournalDirectory() {
  const std::string parent =
      IsDirectory("/dev/shm") ? "/dev/shm" : testing::TempDir();
  return absl::StrCat(parent, "/standby_test.", getpid());
}

bool IsExactlyOnce(const Report& report) {
  for (size_t i = 0; i < report.values.size(); ++i) {
    if (report.values[i] != -report.acknowledged[i]) return false;
  }
  return report.complete;
}

TEST(StandbyTest, TheSumAppliedIsTheSumAcknowledgedWhateverIsLost) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t schedules = absl::GetFlag(FLAGS_schedules);
  Report all;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    const Report report = StandbySimulation(OptionsOf(seed)).Run();
    ASSERT_TRUE(report.complete) << "seed " << seed;
    ASSERT_TRUE(IsExactlyOnce(report)) << "seed " << seed;
    all.takeovers += report.takeovers;
    all.cuts += report.cuts;
    all.host_losses += report.host_losses;
    all.chief_losses += report.chief_losses;
    all.synced += report.synced;
    all.duplicates += report.duplicates;
  }
  // What the schedules are there for has happened in them.
  EXPECT_GT(all.takeovers, schedules);
  EXPECT_GT(all.cuts, schedules);
  EXPECT_GT(all.host_losses, schedules);
  EXPECT_GT(all.chief_losses, schedules);
  EXPECT_GT(all.synced, schedules);
  EXPECT_GT(all.duplicates, schedules);
}

TEST(StandbyTest, WithAJournalBothProcessesMayBeLost) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t schedules = (absl::GetFlag(FLAGS_schedules) + 3) / 4;
  Report all;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    Options options = OptionsOf(seed);
    options.directory = JournalDirectory();
    options.takeovers = 15;
    options.moves = seed % 2 == 0 ? 300 : 0;
    options.tears = 300;
    const Report report = StandbySimulation(options).Run();
    ASSERT_TRUE(report.complete) << "seed " << seed;
    ASSERT_TRUE(IsExactlyOnce(report)) << "seed " << seed;
    all.takeovers += report.takeovers;
    all.losses_of_all += report.losses_of_all;
    all.moves += report.moves;
    all.tears += report.tears;
  }
  EXPECT_GT(all.takeovers, schedules);
  EXPECT_GT(all.losses_of_all, schedules);
  EXPECT_GT(all.moves, schedules / 4);
  EXPECT_GT(all.tears, schedules / 8);
  std::filesystem::remove_all(JournalDirectory());
}

// How many of some schedules give a wrong sum. `options`: those that have to do
// with the mutant.
int CaughtOf(Options options, uint64_t schedules = 30) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  options.pushes = 120;
  int caught = 0;
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    options.seed = seed;
    if (!IsExactlyOnce(StandbySimulation(options).Run())) ++caught;
  }
  return caught;
}

TEST(StandbyTest, AnAcknowledgementBeforeTheStandbyHoldsThePushIsCaught) {
  EXPECT_GT(CaughtOf({.mutant = Mutant::kAcknowledgesBeforeHeld}), 10);
}

TEST(StandbyTest, AShardThatGoesOnAloneUnaskedIsCaught) {
  EXPECT_GT(
      CaughtOf({.cuts = 15, .makes = 300, .mutant = Mutant::kGoesOnAlone}), 10);
}

TEST(StandbyTest, AStandbyThatStillTakesFromAReplacedProcessIsCaught) {
  EXPECT_GT(CaughtOf({.stream_ends = 5,
                      .takeovers = 15,
                      .mutant = Mutant::kTakesFromTheOldPrimary}),
            5);
}

TEST(StandbyTest, AStandbyThatWasGivenUpAndIsTakenIsCaught) {
  EXPECT_GT(CaughtOf({.cuts = 15,
                      .makes = 100,
                      .mutant = Mutant::kRestoresWhatWasGivenUp}),
            5);
}

TEST(StandbyTest, ASuccessorWithoutTheWindowsIsCaught) {
  EXPECT_GT(CaughtOf({.mutant = Mutant::kForgetsWindows}), 10);
}

TEST(StandbyTest, ASuccessorThatForgetsTheJournalIsCaught) {
  EXPECT_GT(CaughtOf({.takeovers = 25,
                      .directory = JournalDirectory(),
                      .saves = 2,
                      .losses_of_all = 30,
                      .moves = 0,
                      .mutant = Mutant::kForgetsTheJournal},
                     /*schedules=*/8),
            2);
  std::filesystem::remove_all(JournalDirectory());
}

TEST(StandbyTest, ASuccessorThatGoesOnWithATornJournalIsCaught) {
  EXPECT_GT(CaughtOf({.takeovers = 6,
                      .directory = JournalDirectory(),
                      .saves = 1,
                      .losses_of_all = 6,
                      .moves = 0,
                      .tears = 1000,
                      .mutant = Mutant::kTakesAnyJournal}),
            5);
  std::filesystem::remove_all(JournalDirectory());
}

TEST(StandbyTest, AChiefThatAnswersBeforeItRecordsIsCaught) {
  // It has to be lost before it records something else, and the shard too.
  EXPECT_GT(CaughtOf({.cuts = 15,
                      .takeovers = 15,
                      .chief_losses = 20,
                      .makes = 50,
                      .mutant = Mutant::kAnswersBeforeItRecords},
                     /*schedules=*/150),
            1);
}

}  // namespace
}  // namespace parasol

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
