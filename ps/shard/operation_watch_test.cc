#include "ps/shard/operation_watch.h"

#include <deque>

#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;

const absl::Time kStart = absl::FromUnixSeconds(1000);

absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(OperationWatchTest, OperationsAndTheirTimeAreCounted) {
  OperationWatch watch(kStart);
  watch.Load(0, 0, kStart);
  for (int i = 0; i < 4; ++i) {
    OperationWatch::Running running(watch, At(i));
    running.End(At(i + .5));
  }
  const wire::PsLoad load = watch.Load(4000, 400, At(4));
  EXPECT_EQ(load.operations_per_second(), 1);
  EXPECT_EQ(load.busy_threads(), .5);
  EXPECT_EQ(load.push_bytes_per_second(), 1000);
  EXPECT_EQ(load.pull_bytes_per_second(), 100);
  EXPECT_FALSE(load.has_stuck());
}

TEST(OperationWatchTest, AnOperationThatDoesNotEndIsStuck) {
  OperationWatch watch(kStart);
  OperationWatch::Running stuck(watch, At(1));
  EXPECT_EQ(FromProto(watch.Load(0, 0, At(4)).stuck()), absl::Seconds(3));
  // It is not hidden by others, which go on beside it.
  OperationWatch::Running other(watch, At(5));
  EXPECT_EQ(FromProto(watch.Load(0, 0, At(5.5)).stuck()), absl::Seconds(4.5));
  other.End(At(6));
  EXPECT_EQ(FromProto(watch.Load(0, 0, At(7)).stuck()), absl::Seconds(6));
  OperationWatch::Running next(watch, At(7.5));
  stuck.End(At(8));
  EXPECT_EQ(FromProto(watch.Load(0, 0, At(9)).stuck()), absl::Seconds(1.5));
  next.End(At(10));
  EXPECT_FALSE(watch.Load(0, 0, At(11)).has_stuck());
}

// More than there are entries for: they count, and nothing else breaks.
TEST(OperationWatchTest, ManyOperationsAtOnceAreCounted) {
  OperationWatch watch(kStart);
  watch.Load(0, 0, kStart);
  std::deque<OperationWatch::Running> running;
  const int count = 2 * static_cast<int>(OperationWatch::kStarts);
  for (int i = 0; i < count; ++i) running.emplace_back(watch, At(1));
  EXPECT_EQ(FromProto(watch.Load(0, 0, At(2)).stuck()), absl::Seconds(1));
  for (OperationWatch::Running& each : running) each.End(At(3));
  const wire::PsLoad load = watch.Load(0, 0, At(4));
  EXPECT_FALSE(load.has_stuck());
  EXPECT_EQ(load.operations_per_second(), count / 4.);
}

TEST(OperationWatchTest, WhoComesLastInStepsIsLateByTheTimeToTheOneBefore) {
  OperationWatch watch(kStart);
  for (int step = 0; step < 5; ++step) {
    watch.Gradient(10, step, At(step));
    watch.Gradient(30, step, At(step + .2));
    watch.Gradient(20, step, At(step + .1));
    watch.Gradient(30, step, At(step + .7));      // its second pack
    watch.Gradient(20, step - 1, At(step + .9));  // sent again
  }
  // The last step has not ended.
  const wire::PsLoad load = watch.Load(0, 0, At(5));
  EXPECT_EQ(load.late_incarnation(), 30u);
  EXPECT_THAT(load.late_share(), DoubleNear(4 * .6 / 5, 1e-6));
  // Nobody is late any more, two windows later.
  watch.Gradient(10, 5, At(14));
  watch.Gradient(10, 6, At(23));
  EXPECT_EQ(watch.Load(0, 0, At(32)).late_incarnation(), 0u);
}

TEST(OperationWatchTest, BehindALoadEarlierStepsCountAgain) {
  OperationWatch watch(kStart);
  watch.Gradient(10, 1000, kStart);
  watch.StartOver();
  for (int step = 0; step < 2; ++step) {
    watch.Gradient(10, step, At(step));
    watch.Gradient(30, step, At(step + .5));
  }
  EXPECT_EQ(watch.Load(0, 0, At(2)).late_incarnation(), 30u);
}

TEST(OperationWatchTest, OneWorkerAloneIsNotLate) {
  OperationWatch watch(kStart);
  for (int step = 0; step < 5; ++step) watch.Gradient(10, step, At(step));
  EXPECT_EQ(watch.Load(0, 0, At(5)).late_incarnation(), 0u);
}

TEST(OperationWatchTest, ARowWithALargeShareIsFoundAmongMany) {
  OperationWatch watch(kStart);
  EXPECT_FALSE(watch.HottestRow(kStart).has_value());
  for (uint64_t i = 0; i < 3000; ++i) {
    watch.PushedRow(0, 1'000'000 + i, At(1));
    if (i % 2 == 0) watch.PushedRow(1, 7, At(1));
  }
  const auto hot = watch.HottestRow(At(2));
  ASSERT_TRUE(hot.has_value());
  EXPECT_EQ(hot->table, 1u);
  EXPECT_EQ(hot->row, 7u);
  EXPECT_THAT(hot->share, DoubleNear(1. / 3, .07));
  // It is forgotten when it is pushed no more.
  for (uint64_t i = 0; i < 100; ++i) {
    watch.PushedRow(0, i, At(11));
    watch.PushedRow(0, i, At(21));
  }
  const auto later = watch.HottestRow(At(22));
  ASSERT_TRUE(later.has_value());
  EXPECT_LT(later->share, .1);
}

}  // namespace
}  // namespace parasol
