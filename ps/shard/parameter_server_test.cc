#include "ps/shard/parameter_server.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kChunk = kChunkElements;
constexpr int64_t kElements = 2 * kChunk + 9;
constexpr uint64_t kWorker = 7;

// One ps with what it borrows.
struct Ps {
  explicit Ps(uint64_t memory_limit_bytes = UINT64_MAX)
      : metrics(registry),
        server({.task = "ps/1", .memory_limit_bytes = memory_limit_bytes},
               clock, metrics) {}

  SimulatedClock clock;
  MetricsRegistry registry;
  PsMetrics metrics;
  ParameterServer server;
};

// The whole variable "w" on one shard, zeros; w -= gradient.
wire::LoadRequest LoadOrder(const std::string& run_id = "run-a") {
  wire::LoadRequest order;
  order.set_run_id(run_id);
  order.set_seed(1);
  order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  *order.add_part() = MakePart(0, "w", kElements, 0, kElements);
  order.set_num_shards(1);
  return order;
}

// Its first two chunks, or the rest, as one of two shards holds them.
wire::LoadRequest HalfOrder(uint32_t shard) {
  wire::LoadRequest order = LoadOrder();
  *order.mutable_part(0) = shard == 0
                               ? MakePart(0, "w", kElements, 0, 2 * kChunk)
                               : MakePart(0, "w", kElements, 2 * kChunk, 9);
  order.set_shard(shard);
  order.set_num_shards(2);
  return order;
}

wire::LoadRequest AdamOrder() {
  wire::LoadRequest order = LoadOrder();
  order.mutable_optimizer()->mutable_adam()->set_learning_rate(0.1);
  order.mutable_part(0)->mutable_initializer()->mutable_glorot_uniform();
  return order;
}

wire::RequestHeader PushRequest(uint64_t sequence, uint64_t worker = kWorker,
                                int64_t elements = kElements) {
  wire::RequestHeader request;
  request.set_run_id("run-a");
  request.set_worker_incarnation(worker);
  wire::Operation& operation = *request.add_operation();
  operation.set_id(sequence);
  *operation.mutable_push() = MakePush(sequence, {MakeRange(0, 0, elements)});
  return request;
}

wire::RequestHeader PullRequest(int64_t elements = kElements) {
  wire::RequestHeader request;
  request.set_run_id("run-a");
  *request.add_operation()->mutable_pull() =
      MakePull({MakeRange(0, 0, elements)});
  return request;
}

// The results of a message's operations, none of which waits.
std::vector<absl::StatusOr<OperationResult>> ExecuteAll(
    Ps& ps, const wire::RequestHeader& header,
    std::vector<PayloadView> payloads) {
  const auto request = ReceivedMessage::Create(header, std::move(payloads));
  EXPECT_OK(request);
  std::vector<absl::StatusOr<OperationResult>> results;
  for (size_t i = 0; i < request->size(); ++i) {
    ps.server.Execute(*request, i,
                      [&results](absl::StatusOr<OperationResult> result) {
                        results.push_back(std::move(result));
                      });
    EXPECT_EQ(results.size(), i + 1);
  }
  return results;
}

// Returns the result of a message of one operation.
absl::StatusOr<OperationResult> Execute(Ps& ps,
                                        const wire::RequestHeader& header,
                                        std::vector<PayloadView> payloads) {
  return ExecuteAll(ps, header, std::move(payloads))[0];
}

absl::StatusOr<OperationResult> Push(Ps& ps, uint64_t sequence, float gradient,
                                     int64_t elements = kElements) {
  const std::string bytes = Floats(elements, gradient);
  return Execute(ps, PushRequest(sequence, kWorker, elements), {ViewOf(bytes)});
}

// Whether the push had been applied before.
bool IsDuplicate(const absl::StatusOr<OperationResult>& push) {
  EXPECT_OK(push);
  return push.ok() && push->duplicate;
}

std::vector<float> Values(Ps& ps, int64_t elements = kElements) {
  const auto result = Execute(ps, PullRequest(elements), {});
  EXPECT_OK(result);
  return result.ok() ? FloatsOf(result->payloads) : std::vector<float>();
}

// Checkpoints of the shards in a directory of their own.
class Checkpoints {
 public:
  Checkpoints()
      : store_(CheckpointStore::OpenForWriting(
                   absl::StrCat(testing::TempDir(), "/",
                                testing::UnitTest::GetInstance()
                                    ->current_test_info()
                                    ->name()))
                   .value()) {}

  // The path of a checkpoint that holds what `shards` hold.
  std::string Write(const std::vector<Ps*>& shards,
                    const std::vector<std::string>& slots) {
    durable::CheckpointManifest manifest;
    manifest.set_run_id("run-a");
    manifest.set_global_step(++step_);
    auto* variable = manifest.add_variable();
    variable->set_name("w");
    variable->add_shape(kElements);
    variable->mutable_slot()->Assign(slots.begin(), slots.end());
    const std::string directory = store_.Begin(step_).value();
    for (size_t i = 0; i < shards.size(); ++i) {
      *manifest.add_file() = WriteShard(*shards[i], directory, i);
    }
    EXPECT_OK(store_.Commit(directory, manifest));
    return store_.PathOf(step_);
  }

 private:
  static durable::CheckpointFile WriteShard(Ps& ps,
                                            const std::string& directory,
                                            size_t number) {
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    request.set_directory(directory);
    request.set_file_name(absl::StrCat("shard-", number, ".sst"));
    const auto response = ps.server.Snapshot(request);
    EXPECT_OK(response);
    durable::CheckpointFile file;
    file.set_name(request.file_name());
    file.set_bytes(response->bytes());
    file.set_crc32c(response->crc32c());
    return file;
  }

  CheckpointStore store_;
  int64_t step_ = 0;
};

wire::LoadRequest From(wire::LoadRequest order, const std::string& checkpoint) {
  order.set_checkpoint(checkpoint);
  return order;
}

TEST(ParameterServerTest, SaysWhatItWaitsForBeforeItIsLoaded) {
  Ps ps;
  EXPECT_THAT(Push(ps, 3, 1),
              StatusIs(absl::StatusCode::kUnavailable,
                       "ps/1 holds no variables yet: waiting for the chief's "
                       "load order"));
  EXPECT_EQ(ps.server.run_id(), "");
}

TEST(ParameterServerTest, AppliesPushesToWhatItHasLoaded) {
  Ps ps;
  ASSERT_OK_AND_ASSIGN(const wire::LoadResponse sizes,
                       ps.server.Load(LoadOrder()));
  EXPECT_EQ(sizes.value_bytes(), kElements * sizeof(float));
  EXPECT_EQ(sizes.slot_bytes(), 0u);
  EXPECT_EQ(ps.server.run_id(), "run-a");
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

TEST(ParameterServerTest, AResentLoadKeepsWhatWasTrained) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  ASSERT_OK(ps.server.Load(From(LoadOrder(), "/no/such/checkpoint")));
  EXPECT_THAT(Values(ps), Each(-2));
}

TEST(ParameterServerTest, ALoadOfAnotherRunOrShareStartsAnew) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder("run-b")));
  ASSERT_OK(ps.server.Load(LoadOrder("run-a")));
  EXPECT_OK(Push(ps, 1, 2));
  ASSERT_OK(ps.server.Load(HalfOrder(0)));
  EXPECT_THAT(Values(ps, 2 * kChunk), Each(0));
  EXPECT_FALSE(IsDuplicate(Push(ps, 1, 2, 2 * kChunk)));
}

TEST(ParameterServerTest, AFailedLoadLeavesItEmpty) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder("run-b")));
  EXPECT_THAT(ps.server.Load(From(LoadOrder(), "/no/such/checkpoint")),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ps.server.run_id(), "");
  EXPECT_EQ(ps.metrics.value_bytes.value(), 0);
  EXPECT_OK(ps.server.Load(LoadOrder()));
}

TEST(ParameterServerTest, RefusesLoadsThatNoRepetitionMends) {
  Ps ps;
  wire::LoadRequest without_optimizer = LoadOrder();
  without_optimizer.clear_optimizer();
  wire::LoadRequest without_initializer = LoadOrder();
  without_initializer.mutable_part(0)->clear_initializer();
  wire::LoadRequest outside = LoadOrder();
  outside.mutable_part(0)->set_first_element(1);
  for (const wire::LoadRequest& order :
       {LoadOrder(""), without_optimizer, without_initializer, outside}) {
    EXPECT_THAT(ps.server.Load(order),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << order.ShortDebugString();
  }
}

TEST(ParameterServerTest, RefusesMoreThanItsMemoryLimit) {
  const uint64_t bytes_with_two_slots = 3 * kElements * sizeof(float);
  Ps small(bytes_with_two_slots - 1), enough(bytes_with_two_slots);
  EXPECT_THAT(small.server.Load(AdamOrder()),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_OK(enough.server.Load(AdamOrder()));
  wire::LoadRequest huge = AdamOrder();
  const int64_t elements = int64_t{1} << 40;
  *huge.mutable_part(0) = MakePart(0, "w", elements, 0, elements);
  EXPECT_THAT(small.server.Load(huge),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(ParameterServerTest, ASnapshotStaysInItsDirectoryAndRun) {
  Ps ps;
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  request.set_directory(testing::TempDir());
  request.set_file_name("shard.sst");
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(ps.server.Load(LoadOrder("run-b")));
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(ps.server.Load(LoadOrder()));
  for (const std::string& name :
       {std::string(), std::string("../x"), std::string("a/b"),
        std::string(".."), std::string("a\0b", 3)}) {
    request.set_file_name(name);
    EXPECT_THAT(ps.server.Snapshot(request),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  request.set_file_name("shard.sst");
  EXPECT_OK(ps.server.Snapshot(request));
  request.clear_directory();
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ps.metrics.snapshots_total.value(), 1);
  EXPECT_EQ(ps.metrics.failed_snapshots_total.value(), 2);
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

TEST(ParameterServerTest, ASnapshotThatWaitsForAStepEndsWhenThePsLeaves) {
  Ps ps;
  wire::LoadRequest order = LoadOrder();
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  ASSERT_OK(ps.server.Load(order));
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  request.set_directory(::testing::TempDir());
  request.set_file_name("never-written");
  request.set_at_updates(1);
  absl::StatusOr<wire::SnapshotResponse> response;
  std::thread snapshot([&] { response = ps.server.Snapshot(request); });
  ps.server.EndWaits();
  snapshot.join();
  EXPECT_THAT(response, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("ps/1 no longer holds run run-a")));
}

}  // namespace
}  // namespace parasol
