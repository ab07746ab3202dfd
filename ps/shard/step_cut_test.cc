// Cuts of synchronous training at one shard, holds before them, and the memory
// of a step.
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/shard/load_shard.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/testing/requests.h"
#include "ps/testing/synchronous_shard.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Shard = SynchronousShard;

// Pushes the gradient of v0 or v1 alone.
void PushVariable(Shard& shard, int64_t step, int replica, int variable,
                  float gradient) {
  wire::Push push = MakePush(0, {MakeRange(variable, 0, 1)});
  push.mutable_sync()->set_step(step);
  push.mutable_sync()->set_replica(replica);
  const std::string bytes = Floats(1, gradient);
  shard.table().Execute(7, OperationOf(push), {{ViewOf(bytes)}},
                        PendingResult().Done());
}

absl::StatusOr<ShardSnapshot> TakeSnapshotAt(
    Shard& shard, int64_t updates,
    std::function<bool()> is_cancelled = [] { return false; }) {
  auto snapshot = shard.table().BeginSnapshotAt(updates);
  if (!snapshot.ok()) return snapshot.status();
  return (*snapshot)->Wait(Clock::Real(), is_cancelled);
}

TEST(StepCutTest, AShardWithoutPartsIsBehindNoCut) {
  wire::LoadRequest order = MakeSynchronousOrder(1, 1);
  order.clear_part();
  order.clear_table();
  Shard shard(order);
  const auto updates = shard.table().Hold();
  ASSERT_OK(updates);
  EXPECT_EQ(updates->min, INT64_MAX);
  EXPECT_EQ(updates->max, 0);
}

TEST(StepCutTest, ACutIsTakenAtExactlyItsUpdates) {
  Shard shard(1, 1);
  shard.Push(0, 0, {.v0 = 1});
  const auto snapshot = *shard.table().BeginSnapshotAt(3);
  for (int step = 1; step < 6; ++step) {
    EXPECT_EQ(snapshot->IsDone(), step >= 3);
    shard.Push(step, 0, {.v0 = 1, .rows = {1}, .of_rows = {.5f}});
  }
  auto cut = snapshot->Wait(Clock::Real(), [] { return false; });
  ASSERT_OK(cut);
  EXPECT_EQ(cut->chunks[0].contents.updates, 3);
  EXPECT_THAT(cut->chunks[0].contents.value.span(), ElementsAre(-6));
  EXPECT_EQ(cut->tables[0].updates(), 3);
}

TEST(StepCutTest, ACutNamesWhatIsPastItOrNotYetThere) {
  Shard shard(1, 1);
  shard.Push(0, 0, {.v0 = 1});
  EXPECT_OK(TakeSnapshotAt(shard, 1));
  EXPECT_THAT(TakeSnapshotAt(shard, 0).status(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("\"v0\"")));
  EXPECT_THAT(TakeSnapshotAt(shard, 2, [] { return true; }).status(),
              StatusIs(absl::StatusCode::kCancelled,
                       HasSubstr("\"v0\" at element 0 has had 1")));
}

TEST(StepCutTest, AHoldPutsOffWhatIsBeyondTheLargestNumberOfUpdates) {
  Shard shard(2, 2);
  shard.Push(0, 0, {.v0 = 1});
  PushVariable(shard, 0, 1, /*variable=*/0, 2);
  const auto updates = shard.table().Hold();
  ASSERT_OK(updates);
  EXPECT_EQ(updates->min, 0);
  EXPECT_EQ(updates->max, 1);
  shard.Push(0, 1, {.v0 = 2});
  EXPECT_EQ(shard.Updates(), 1);
  const auto first = shard.Push(1, 0, {.v0 = 1}),
             second = shard.Push(1, 1, {.v0 = 3});
  EXPECT_FALSE(first.is_done() || second.is_done());
  EXPECT_EQ(shard.Updates(), 1);
  const auto snapshot = *shard.table().BeginSnapshotAt(1);
  ASSERT_TRUE(snapshot->IsDone());
  EXPECT_OK(snapshot->Wait(Clock::Real(), [] { return false; }));
  EXPECT_TRUE(first.is_done() && second.is_done());
  EXPECT_THAT(shard.Values(), ElementsAre(-7, 1));
}

TEST(StepCutTest, AGradientBeyondThoseOfAStepThatIsHeldIsStale) {
  Shard shard(1, 2);
  ASSERT_OK(shard.table().Hold());
  const auto first = shard.Push(0, 0, {.v0 = 1}),
             backup = shard.Push(0, 1, {.v0 = 100});
  EXPECT_FALSE(first.is_done() || backup.is_done());
  shard.table().EndHold();
  ASSERT_TRUE(first.is_done() && backup.is_done());
  EXPECT_FALSE(first.dense.Get()->stale);
  EXPECT_TRUE(backup.dense.Get()->stale && backup.rows.Get()->stale);
  EXPECT_THAT(shard.Values(), ElementsAre(-2, 1));
}

// Values, a step's sums, and room for the gradients of one replica.
constexpr uint64_t kTightMemory = 3 * 2 * sizeof(float);

TEST(StepMemoryTest, AGradientThatHasNoRoomIsToBeSentAgain) {
  Shard shard(MakeSynchronousOrder(3, 3), kTightMemory);
  const auto held = shard.Push(0, 2, {.v0 = 1});
  EXPECT_FALSE(held.dense.is_done());
  const auto refused = shard.Push(0, 1, {.v0 = 2});
  ASSERT_TRUE(refused.dense.is_done());
  EXPECT_THAT(refused.dense.Get().status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("--memory_limit_bytes")));
  EXPECT_FALSE(shard.Push(0, 0, {.v0 = 6}).dense.is_done());
  const auto again = shard.Push(0, 1, {.v0 = 2});
  ASSERT_TRUE(again.dense.is_done() && held.dense.is_done());
  EXPECT_OK(again.dense.Get());
  EXPECT_THAT(shard.Values(), ElementsAre(-6, 1));
}

TEST(StepMemoryTest, TheGradientsOfAStepCountInTheMemoryLimit) {
  EXPECT_OK(LoadShard(MakeSynchronousOrder(3, 3), {.memory_bytes = 16}));
  EXPECT_THAT(LoadShard(MakeSynchronousOrder(3, 3), {.memory_bytes = 15}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("a synchronous step, of 8 bytes")));
}

}  // namespace
}  // namespace parasol
