#include "ps/shard/cut_hold.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/shard/load_shard.h"
#include "ps/testing/requests.h"

namespace parasol {
namespace {

// A shard of one element, whose steps one replica makes.
std::shared_ptr<ParameterShard> MakeShard(bool is_synchronous = true) {
  wire::LoadRequest order;
  order.set_run_id("run");
  order.mutable_optimizer()->mutable_sgd();
  *order.add_part() = MakePart(0, "v", 1, 0, 1);
  if (is_synchronous) {
    order.mutable_sync()->set_replicas_to_aggregate(1);
    order.mutable_sync()->set_total_replicas(1);
  }
  return *LoadShard(order, {});
}

// Notifies `done` when the step is complete.
void Push(ParameterShard& shard, int64_t step, absl::Notification& done) {
  wire::Push push = MakePush(0, {MakeRange(0, 0, 1)});
  push.mutable_sync()->set_step(step);
  const std::string gradient = Floats(1, 1);
  shard.Execute(7, OperationOf(push), {{ViewOf(gradient)}},
                [&done](absl::StatusOr<OperationResult> result) {
                  EXPECT_OK(result);
                  done.Notify();
                });
}

TEST(CutHoldTest, AShardWhoseChiefDoesNotComeBackGoesOnByItself) {
  SimulatedClock clock;
  CutHold hold(clock);
  const std::shared_ptr<ParameterShard> shard = MakeShard();
  const auto updates = hold.Hold(shard);
  ASSERT_OK(updates);
  EXPECT_EQ(updates->max, 0);
  absl::Notification done;
  Push(*shard, 0, done);
  EXPECT_FALSE(done.HasBeenNotified());
  clock.Advance(CutHold::kLimit);
  done.WaitForNotification();
  EXPECT_EQ((*hold.Hold(shard)).min, 1);
}

TEST(CutHoldTest, AHoldThatIsAskedForAgainAnswersTheSame) {
  SimulatedClock clock;
  CutHold hold(clock);
  const std::shared_ptr<ParameterShard> shard = MakeShard();
  absl::Notification done;
  ASSERT_OK(hold.Hold(shard));
  Push(*shard, 0, done);
  const auto again = hold.Hold(shard);
  ASSERT_OK(again);
  EXPECT_EQ(again->max, 0);
  EXPECT_FALSE(done.HasBeenNotified());
  shard->EndHold();
  EXPECT_TRUE(done.HasBeenNotified());
}

TEST(CutHoldTest, AnotherShardEndsTheHoldOfTheOneBefore) {
  SimulatedClock clock;
  CutHold hold(clock);
  const std::shared_ptr<ParameterShard> shard = MakeShard();
  absl::Notification done;
  ASSERT_OK(hold.Hold(shard));
  Push(*shard, 0, done);
  ASSERT_OK(hold.Hold(MakeShard()));
  EXPECT_TRUE(done.HasBeenNotified());
}

TEST(CutHoldTest, AnAsynchronousShardHasNoCut) {
  SimulatedClock clock;
  CutHold hold(clock);
  EXPECT_THAT(hold.Hold(MakeShard(/*is_synchronous=*/false)).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace parasol
