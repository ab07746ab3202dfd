#include "ps/shard/parameter_server.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/testing/parameter_server_fixture.h"

namespace parasol::parameter_server_testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(ParameterServerTest, SaysWhatItWaitsForBeforeItIsLoaded) {
  Ps ps;
  EXPECT_THAT(Push(ps, 3, 1),
              StatusIs(absl::StatusCode::kUnavailable,
                       "ps/1 holds no variables yet: waiting for the chief's "
                       "load order"));
  EXPECT_EQ(ps.server.holding().run_id, "");
}

TEST(ParameterServerTest, AppliesPushesToWhatItHasLoaded) {
  Ps ps;
  ASSERT_OK_AND_ASSIGN(const wire::LoadResponse sizes,
                       ps.server.Load(LoadOrder()));
  EXPECT_EQ(sizes.value_bytes(), kElements * sizeof(float));
  EXPECT_EQ(sizes.slot_bytes(), 0u);
  EXPECT_EQ(ps.server.holding().run_id, "run-a");
  EXPECT_OK(Push(ps, 1, 2));
  EXPECT_THAT(Values(ps), Each(-2));
}

TEST(ParameterServerTest, AResentPushIsAnsweredAsDuplicateAndCounted) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_FALSE(IsDuplicate(Push(ps, 1, 2)));
  EXPECT_TRUE(IsDuplicate(Push(ps, 1, 2)));
  EXPECT_THAT(Values(ps), Each(-2));
  EXPECT_EQ(ps.metrics.pushes_total.value(), 1);
  EXPECT_EQ(ps.metrics.duplicate_pushes_total.value(), 1);
  EXPECT_EQ(ps.metrics.push_bytes_total.value(), kElements * sizeof(float));
}

TEST(ParameterServerTest, RefusesRequestsForAnotherRun) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder("run-b")));
  EXPECT_THAT(Push(ps, 1, 2), StatusIs(absl::StatusCode::kFailedPrecondition,
                                       "ps/1 holds run run-b, not run-a"));
}

TEST(ParameterServerTest, RefusesWhatIsNeitherPushNorPull) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  wire::RequestHeader nothing;
  nothing.set_run_id("run-a");
  nothing.add_operation();
  EXPECT_THAT(Execute(ps, nothing, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ps.registry.Text(),
              HasSubstr("parasol_ps_rejected_requests_total{reason="
                        "\"INVALID_ARGUMENT\"} 1"));
}

TEST(ParameterServerTest, AFailedOperationLeavesTheOthersOfItsMessageAlone) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  const std::string bytes = Floats(kElements, 2);
  wire::RequestHeader request = PullRequest();
  request.MergeFrom(PushRequest(1));
  request.MergeFrom(PullRequest());
  request.mutable_operation(2)->mutable_pull()->mutable_range(0)->set_part(9);
  request.MergeFrom(PullRequest());
  const auto results = ExecuteAll(ps, request, {ViewOf(bytes)});
  ASSERT_OK(results[0]);
  EXPECT_THAT(FloatsOf(results[0]->payloads), Each(0));
  EXPECT_OK(results[1]);
  EXPECT_THAT(results[2], StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_OK(results[3]);
  EXPECT_THAT(FloatsOf(results[3]->payloads), Each(-2));
}

TEST(ParameterServerTest, OperationsGoByTheLayoutAndTheProcess) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  struct Case {
    std::string name;
    uint64_t layout;
    uint64_t incarnation;
    absl::StatusCode want;
  };
  const Case cases[] = {
      {"not said", 0, 0, absl::StatusCode::kOk},
      {"these", kLayout, kIncarnation, absl::StatusCode::kOk},
      {"another layout", kLayout + 1, kIncarnation,
       absl::StatusCode::kFailedPrecondition},
      {"another process", kLayout, kIncarnation + 1,
       absl::StatusCode::kUnavailable},
      {"another process, other variables", kLayout + 1, kIncarnation + 1,
       absl::StatusCode::kUnavailable},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    wire::RequestHeader request = PullRequest();
    request.set_layout(c.layout);
    if (c.incarnation != 0) {
      request.set_ps_incarnation(PublicNumber(c.incarnation));
    }
    EXPECT_THAT(Execute(ps, request, {}), StatusIs(c.want));
  }
}

TEST(ParameterServerTest, APushWithAnAbsurdSequenceLosesNoOther) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  EXPECT_THAT(Push(ps, uint64_t{1} << 63, 2),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(IsDuplicate(Push(ps, 2, 2)));
  EXPECT_THAT(Values(ps), Each(-4));
}

TEST(RestoreTest, ARestoredShardContinuesWithTheSameBits) {
  Checkpoints checkpoints;
  Ps before, after;
  ASSERT_OK(before.server.Load(AdamOrder()));
  for (int step = 1; step <= 3; ++step)
    EXPECT_OK(Push(before, step, 0.1f * step));
  const std::string checkpoint = checkpoints.Write({&before}, {"m", "v"});

  ASSERT_OK(after.server.Load(From(AdamOrder(), checkpoint)));
  EXPECT_EQ(Values(after), Values(before));
  for (int step = 4; step <= 5; ++step) {
    EXPECT_FALSE(IsDuplicate(Push(after, step, 0.1f * step)));
    EXPECT_OK(Push(before, step, 0.1f * step));
    EXPECT_EQ(Values(after), Values(before)) << step;
  }
}

TEST(RestoreTest, ARestoredShardKnowsThePushesThatItHolds) {
  Checkpoints checkpoints;
  Ps before, after;
  ASSERT_OK(before.server.Load(LoadOrder()));
  EXPECT_OK(Push(before, 1, 2));
  EXPECT_OK(Push(before, 3, 2));
  const std::string checkpoint = checkpoints.Write({&before}, {});
  ASSERT_OK(after.server.Load(From(LoadOrder(), checkpoint)));
  EXPECT_TRUE(IsDuplicate(Push(after, 1, 2)));
  EXPECT_FALSE(IsDuplicate(Push(after, 2, 2)));
  EXPECT_TRUE(IsDuplicate(Push(after, 3, 2)));
  EXPECT_THAT(Values(after), Each(-6));
}

TEST(RestoreTest, AShardFarBehindItsWorkersTakesTheirNextPushes) {
  Checkpoints checkpoints;
  Ps before, after;
  ASSERT_OK(before.server.Load(LoadOrder()));
  EXPECT_OK(Push(before, 1, 2));
  const std::string checkpoint = checkpoints.Write({&before}, {});
  ASSERT_OK(after.server.Load(From(LoadOrder(), checkpoint)));
  EXPECT_FALSE(IsDuplicate(Push(after, 100000, 2)));
  EXPECT_FALSE(IsDuplicate(Push(after, 99999, 2)));
  EXPECT_THAT(Values(after), Each(-6));
}

TEST(RestoreTest, OneShardsCheckpointServesTwoAndTheReverse) {
  Checkpoints checkpoints;
  Ps whole, first, second, whole_again;
  ASSERT_OK(whole.server.Load(AdamOrder()));
  EXPECT_OK(Push(whole, 1, 0.5));
  const auto half = [](uint32_t shard) {
    wire::LoadRequest order = HalfOrder(shard);
    *order.mutable_optimizer() = AdamOrder().optimizer();
    return order;
  };
  const std::vector<std::string> slots = {"m", "v"};
  const std::string one = checkpoints.Write({&whole}, slots);
  ASSERT_OK(first.server.Load(From(half(0), one)));
  ASSERT_OK(second.server.Load(From(half(1), one)));
  // Windows of another sharding mean nothing here.
  EXPECT_FALSE(IsDuplicate(Push(first, 1, 0.25, 2 * kChunk)));
  EXPECT_FALSE(IsDuplicate(Push(second, 1, 0.25, 9)));
  EXPECT_OK(Push(whole, 2, 0.25));

  const std::string two = checkpoints.Write({&first, &second}, slots);
  ASSERT_OK(whole_again.server.Load(From(AdamOrder(), two)));
  EXPECT_EQ(Values(whole_again), Values(whole));
}

TEST(RestoreTest, RefusesACheckpointOfAnotherRunModelOrOptimizer) {
  Checkpoints checkpoints;
  Ps before, after;
  ASSERT_OK(before.server.Load(LoadOrder()));
  const std::string checkpoint = checkpoints.Write({&before}, {});
  wire::LoadRequest other_variable = LoadOrder();
  other_variable.mutable_part(0)->set_variable("v");
  wire::LoadRequest other_shape = LoadOrder();
  *other_shape.mutable_part(0) = MakePart(0, "w", kElements + 1, 0, kElements);
  for (const wire::LoadRequest& order :
       {LoadOrder("run-b"), other_variable, other_shape, AdamOrder()}) {
    EXPECT_THAT(
        after.server.Load(From(order, checkpoint)),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(checkpoint)));
  }
}

// Pushes of -1 each: a value is the number of pushes that it has had.

TEST(RestoreTest, ASnapshotDuringPushesHoldsEachWithItsSequenceOrNeither) {
  constexpr int kPushers = 2;
  constexpr int kPushes = 100;
  Checkpoints checkpoints;
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  std::atomic<int> running = kPushers;
  std::vector<std::jthread> pushers;
  for (int worker = 1; worker <= kPushers; ++worker) {
    pushers.emplace_back([&ps, &running, worker] {
      const std::string gradient = Floats(kElements, -1);
      for (int sequence = 1; sequence <= kPushes; ++sequence) {
        EXPECT_OK(
            Execute(ps, PushRequest(sequence, worker), {ViewOf(gradient)}));
      }
      --running;
    });
  }
  do {
    const std::string checkpoint = checkpoints.Write({&ps}, {});
    Ps restored;
    ASSERT_OK(restored.server.Load(From(LoadOrder(), checkpoint)));
    const float held = Values(restored)[0];
    ASSERT_THAT(Values(restored), Each(held));
    // Resent, each push that is not held is applied, and no other one.
    const std::string gradient = Floats(kElements, -1);
    for (int worker = 1; worker <= kPushers; ++worker) {
      for (int sequence = 1; sequence <= kPushes; ++sequence) {
        EXPECT_OK(Execute(restored, PushRequest(sequence, worker),
                          {ViewOf(gradient)}));
      }
    }
    ASSERT_THAT(Values(restored), Each(kPushers * kPushes));
  } while (running > 0);
}

}  // namespace
}  // namespace parasol::parameter_server_testing
