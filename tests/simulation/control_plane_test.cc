// The whole control plane under some thousands of random schedules, and under
// rules that are turned off, which it has to notice.
//
//   bazel test //tests/simulation:control_plane_test
//       --test_arg=--schedules=1000000 --test_arg=--first_seed=12345
//       --test_timeout=3600

#include "tests/simulation/control_plane.h"

#include <cstdint>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "tests/simulation/rules.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

ABSL_FLAG(uint64_t, schedules, 4000, "Number of random schedules.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first one.");

namespace parasol::simulation {
namespace {

// Returns the schedule of a seed without its faults.
Schedule FaultFree(uint64_t seed) {
  Schedule schedule = DrawSchedule(seed);
  schedule.faults.clear();
  schedule.shape.loss = 0;
  return schedule;
}

TEST(ControlPlaneTest, NoScheduleViolatesAnInvariant) {
  const uint64_t first = absl::GetFlag(FLAGS_first_seed);
  const uint64_t schedules = absl::GetFlag(FLAGS_schedules);
  for (uint64_t seed = first; seed < first + schedules; ++seed) {
    const Schedule schedule = DrawSchedule(seed);
    const auto report = ControlPlane::Run(schedule, Rules());
    if (!report.violation) continue;
    FAIL() << report.violation->kind << ": " << report.violation->what << "\n"
           << schedule.ToString() << "shrunk to\n"
           << Shrink(schedule, Rules(), report.violation->kind).ToString();
  }
}

TEST(ControlPlaneTest, AScheduleRunsTheSameEachTime) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Schedule schedule = DrawSchedule(seed);
    const auto once = ControlPlane::Run(schedule, Rules(), true);
    const auto again = ControlPlane::Run(schedule, Rules(), true);
    ASSERT_EQ(once.trace, again.trace) << "seed " << seed;
    ASSERT_EQ(once.events, again.events) << "seed " << seed;
  }
}

TEST(ControlPlaneTest, WithoutFaultsEveryBatchIsDoneOnce) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const auto report = ControlPlane::Run(FaultFree(seed), Rules());
    ASSERT_FALSE(report.violation)
        << "seed " << seed << ": " << report.violation->kind << ", "
        << report.violation->what;
  }
}

TEST(ControlPlaneTest, AFailingScheduleShrinksToOneThatFailsInTheSameWay) {
  Rules rules;
  rules.directory_has_owner = false;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Schedule schedule = DrawSchedule(seed);
    const auto report = ControlPlane::Run(schedule, rules);
    if (!report.violation || schedule.faults.size() < 4) continue;
    const std::string& kind = report.violation->kind;
    const Schedule shrunk = Shrink(schedule, rules, kind);
    EXPECT_LT(shrunk.faults.size(), schedule.faults.size());
    const auto same = ControlPlane::Run(shrunk, rules);
    ASSERT_TRUE(same.violation);
    EXPECT_EQ(same.violation->kind, kind);
    return;
  }
  FAIL() << "no schedule has noticed that a chief that was replaced writes";
}

}  // namespace
}  // namespace parasol::simulation

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  return RUN_ALL_TESTS();
}
