#include "cluster/checkpoint/checkpoint_schedule.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace parasol {
namespace {

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(CheckpointSchedule, IsDueByStepsOrByTime) {
  struct Case {
    std::string name;
    int64_t every_steps;
    double every_seconds;
    int64_t newest;
    int64_t step;
    double now;
    bool want;
  };
  const Case cases[] = {
      {"before the multiple", 100, 0, 0, 99, 1, false},
      {"at the multiple", 100, 0, 0, 100, 1, true},
      {"past the multiple", 100, 0, 103, 199, 1, false},
      {"past the next multiple", 100, 0, 103, 201, 1, true},
      {"before the time", 0, 60, 0, 5, 59, false},
      {"at the time", 0, 60, 0, 5, 60, true},
      {"at the time without a step since", 0, 60, 5, 5, 60, false},
      {"no policy", 0, 0, 0, 1000000, 1e6, false},
      {"time comes before steps", 100, 60, 0, 5, 60, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    job::CheckpointPolicy policy;
    policy.set_every_steps(c.every_steps);
    policy.set_every_seconds(c.every_seconds);
    CheckpointSchedule schedule(policy, c.newest, At(0));
    EXPECT_EQ(schedule.IsDue(c.step, At(c.now)), c.want);
  }
}

TEST(CheckpointSchedule, AFailedOneIsTriedAgainAfterAGrowingWhile) {
  job::CheckpointPolicy policy;
  policy.set_every_steps(10);
  CheckpointSchedule schedule(policy, 0, At(0));
  schedule.Failed(At(0));
  EXPECT_FALSE(schedule.IsDue(10, At(0.5)));
  EXPECT_TRUE(schedule.IsDue(10, At(1)));
  schedule.Failed(At(1));
  EXPECT_FALSE(schedule.IsDue(10, At(2.5)));
  EXPECT_TRUE(schedule.IsDue(10, At(3)));
  for (int i = 0; i < 100; ++i) schedule.Failed(At(3));
  EXPECT_TRUE(schedule.MayTry(At(33)));
}

TEST(CheckpointSchedule, AWrittenOneEndsTheFailures) {
  job::CheckpointPolicy policy;
  policy.set_every_steps(10);
  CheckpointSchedule schedule(policy, std::nullopt, At(0));
  schedule.Failed(At(0));
  schedule.Written(12, At(0));
  EXPECT_EQ(schedule.failures(), 0);
  EXPECT_EQ(schedule.newest_step(), 12);
  EXPECT_TRUE(schedule.IsDue(20, At(0)));
}

TEST(CheckpointSchedule, AnAwaitedOneIsTriedAgainSooner) {
  CheckpointSchedule schedule(job::CheckpointPolicy(), 0, At(0));
  for (int i = 0; i < 100; ++i) {
    schedule.Failed(At(3), CheckpointSchedule::kMaxAwaitedBackoff);
  }
  EXPECT_FALSE(schedule.MayTry(At(7)));
  EXPECT_TRUE(schedule.MayTry(At(8)));
}

TEST(CheckpointSchedule, FailuresBeforeStartingOverDontCount) {
  CheckpointSchedule schedule(job::CheckpointPolicy(), 0, At(0));
  for (int i = 0; i < 9; ++i) schedule.Failed(At(0));
  schedule.StartOver();
  EXPECT_EQ(schedule.failures(), 0);
  EXPECT_TRUE(schedule.MayTry(At(0)));
}

}  // namespace
}  // namespace parasol
