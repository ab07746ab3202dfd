#include "ps/shard/push_gate.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kWorker = 7;

absl::StatusOr<OperationResult> Push(PushGate& gate, uint64_t sequence) {
  return gate.ApplyOnce(kWorker, sequence, /*acknowledged=*/0,
                        [] { return UpdateBounds{.min = 1, .max = 2}; });
}

TEST(PushGateTest, ASequenceIsAppliedOnce) {
  PushGate gate({});
  ASSERT_OK_AND_ASSIGN(const OperationResult first, Push(gate, 1));
  EXPECT_FALSE(first.duplicate);
  EXPECT_EQ(first.min_updates, 1);
  EXPECT_EQ(first.max_updates, 2);
  ASSERT_OK_AND_ASSIGN(const OperationResult again, Push(gate, 1));
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(gate.applied(), 1);
}

TEST(PushGateTest, OneThatFailedMayComeAgain) {
  PushGate gate({});
  const auto fail = []() -> absl::StatusOr<UpdateBounds> {
    return absl::ResourceExhaustedError("no memory");
  };
  EXPECT_THAT(gate.ApplyOnce(kWorker, 1, 0, fail),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(gate.applied(), 0);
  ASSERT_OK_AND_ASSIGN(const OperationResult again, Push(gate, 1));
  EXPECT_FALSE(again.duplicate);
}

TEST(PushGateTest, OneThatIsBeingAppliedIsNotAppliedBesideItself) {
  PushGate gate({});
  const auto apply = [&gate]() -> absl::StatusOr<UpdateBounds> {
    absl::StatusOr<OperationResult> beside;
    // The gate is held shared; a thread of its own finds the mark.
    std::thread([&] { beside = Push(gate, 1); }).join();
    EXPECT_THAT(beside, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("is being applied")));
    return UpdateBounds();
  };
  EXPECT_OK(gate.ApplyOnce(kWorker, 1, 0, apply));
  EXPECT_EQ(gate.applied(), 1);
}

TEST(PushGateTest, ASuccessorKnowsWhatWasApplied) {
  PushGate gate({});
  ASSERT_OK(Push(gate, 1));
  DedupWindows windows;
  gate.WithoutPushes([&] { windows = gate.Windows(); });
  PushGate successor(windows);
  ASSERT_OK_AND_ASSIGN(const OperationResult again, Push(successor, 1));
  EXPECT_TRUE(again.duplicate);
  ASSERT_OK_AND_ASSIGN(const OperationResult next, Push(successor, 2));
  EXPECT_FALSE(next.duplicate);
}

TEST(PushGateTest, ItStaysUntilItGoesOn) {
  PushGate gate({});
  gate.WithoutPushes([] {}, /*stays=*/true);
  EXPECT_TRUE(gate.stays());
  // Another snapshot does not let the pushes in.
  gate.WithoutPushes([] {});
  EXPECT_THAT(Push(gate, 1), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("leaves with a checkpoint")));
  gate.GoOn();
  EXPECT_FALSE(gate.stays());
  EXPECT_OK(Push(gate, 1));
}

TEST(PushGateTest, ASealedOneNeverGoesOn) {
  PushGate gate({});
  gate.Seal();
  gate.GoOn();
  EXPECT_THAT(Push(gate, 1), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("its successor takes")));
}

TEST(PushGateTest, NobodyIsInsideWithoutPushes) {
  PushGate gate({});
  std::atomic<int> inside = 0;
  const auto enter = [&inside] {
    ++inside;
    std::this_thread::yield();
    --inside;
  };
  std::vector<std::thread> threads;
  for (uint64_t worker = 1; worker <= 3; ++worker) {
    threads.emplace_back([&, worker] {
      for (uint64_t sequence = 1; sequence <= 200; ++sequence) {
        EXPECT_OK(gate.ApplyOnce(worker, sequence, 0,
                                 [&]() -> absl::StatusOr<UpdateBounds> {
                                   enter();
                                   return UpdateBounds();
                                 }));
        gate.Enter([&] { enter(); });
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    gate.WithoutPushes([&] { EXPECT_EQ(inside, 0); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate.applied(), 600);
}

}  // namespace
}  // namespace parasol
