// Groups of workers that have the variables under some hundreds of random
// schedules. More of them:
//
//   bazel run //tests/simulation/group:group_control -- --schedules=10000

#include "tests/simulation/group/group_control.h"

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/simulation/group/group_schedule.h"
#include "tests/simulation/schedule.h"
#include "tests/simulation/shrink.h"

namespace parasol::simulation {
namespace {

constexpr uint64_t kSchedules = 300;

std::string Describe(const Schedule& schedule, const Violation& violation) {
  const auto run = [](const Schedule& smaller) {
    return GroupControl::Run(smaller).violation;
  };
  return violation.kind + ": " + violation.what + "\n" + schedule.ToString() +
         "shrunk to\n" +
         Shrink(schedule, ScheduleRun(run), violation.kind).ToString();
}

TEST(GroupControlTest, NoScheduleViolatesAnInvariant) {
  for (uint64_t seed = 1; seed <= kSchedules; ++seed) {
    const Schedule schedule = DrawGroupSchedule(seed);
    const auto report = GroupControl::Run(schedule);
    ASSERT_FALSE(report.violation) << Describe(schedule, *report.violation);
  }
}

// Workers may have no replica.
TEST(GroupControlTest, AJobOfFewerReplicasThanWorkersEnds) {
  Schedule schedule;
  schedule.shape.mode = Shape::Mode::kGroup;
  schedule.shape.ps = 1;
  schedule.shape.workers = 3;
  schedule.shape.replicas = 1;
  schedule.shape.steps = 3;
  for (schedule.seed = 1; schedule.seed <= 10; ++schedule.seed) {
    schedule.shape.chief_beside = schedule.seed % 2 == 0;
    const auto report = GroupControl::Run(schedule);
    ASSERT_FALSE(report.violation) << Describe(schedule, *report.violation);
  }
}

// Worker 0 comes back alone, goes on at the others' step without their updates,
// and computes gradients of that step; then another one comes with the updates.
TEST(GroupControlTest, NoGradientOfOtherValuesIsSummed) {
  for (uint64_t seed = 1240; seed <= 1290; ++seed) {
    Schedule schedule = DrawGroupSchedule(1246);
    schedule.seed = seed;
    schedule.shape.checkpoint_every = 1 << 20;
    Fault killed;
    killed.at = absl::Milliseconds(11527);
    killed.target = {"worker", 0};
    killed.length = absl::Seconds(12);
    Fault parted;
    parted.at = absl::Milliseconds(13024);
    parted.kind = Fault::Kind::kPart;
    parted.amount = (1 << 30) | 1;
    parted.length = absl::Seconds(12);
    schedule.faults = {killed, parted};
    const auto report = GroupControl::Run(schedule);
    ASSERT_FALSE(report.violation) << Describe(schedule, *report.violation);
  }
}

// Each message and operation of a small job's protocol in turn, with each
// worker killed, stopped for a while, parted or told to end there.
struct PointsOf {
  Shape::AllReduce all_reduce;
  int devices = 1;  // of each worker
};
class EveryPointTest : public testing::TestWithParam<PointsOf> {};

TEST_P(EveryPointTest, AFaultThereLosesNothing) {
  Schedule schedule;
  schedule.shape.all_reduce = GetParam().all_reduce;
  schedule.seed = 1;
  schedule.shape.mode = Shape::Mode::kGroup;
  schedule.shape.ps = 1;
  schedule.shape.workers = 3;
  schedule.shape.devices = GetParam().devices;
  schedule.shape.replicas = 3 * GetParam().devices;
  schedule.shape.steps = 3;
  schedule.shape.checkpoint_every = 2;
  const int64_t points = GroupControl::Run(schedule).points;
  ASSERT_GT(points, 100);
  constexpr Fault::Kind kKinds[] = {Fault::Kind::kKill, Fault::Kind::kStop,
                                    Fault::Kind::kPart,
                                    Fault::Kind::kTerminate};
  int64_t number = 0;
  for (int64_t point = 1; point <= points; ++point) {
    Fault fault;
    fault.at_point = point;
    fault.kind = kKinds[++number % 4];
    fault.target = {"worker", static_cast<int>(number / 4 % 3)};
    fault.amount = 1 << fault.target.index;
    fault.length = absl::Seconds(number % 3 == 0 ? 12 : 3);
    schedule.faults = {fault};
    schedule.shape.chief_beside = number % 5 != 0;
    const auto report = GroupControl::Run(schedule);
    ASSERT_FALSE(report.violation) << Describe(schedule, *report.violation);
  }
}

INSTANTIATE_TEST_SUITE_P(AllReduces, EveryPointTest,
                         testing::Values(PointsOf{Shape::AllReduce::kAuto},
                                         PointsOf{Shape::AllReduce::kMachines},
                                         PointsOf{Shape::AllReduce::kStar},
                                         PointsOf{Shape::AllReduce::kTree},
                                         PointsOf{Shape::AllReduce::kChain, 2},
                                         PointsOf{Shape::AllReduce::kMachines,
                                                  3}));

TEST(GroupControlTest, AScheduleRunsTheSameEachTime) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Schedule schedule = DrawGroupSchedule(seed);
    const auto once = GroupControl::Run(schedule, true);
    const auto again = GroupControl::Run(schedule, true);
    ASSERT_EQ(once.trace, again.trace) << "seed " << seed;
    ASSERT_EQ(once.events, again.events) << "seed " << seed;
    ASSERT_EQ(once.points, again.points) << "seed " << seed;
  }
}

}  // namespace
}  // namespace parasol::simulation
