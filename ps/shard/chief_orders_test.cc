// The orders of the chief to a ParameterServer: what it loads, keeps and
// refuses.
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_matchers.h"
#include "cluster/trust/process_secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/shard/parameter_server.h"
#include "ps/testing/parameter_server_fixture.h"

namespace parasol::parameter_server_testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(ParameterServerTest, ALoadThatIsRefusedChangesNothing) {
  Ps ps(kElements * sizeof(float));
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  wire::LoadRequest without_optimizer = LoadOrder("run-b");
  without_optimizer.clear_optimizer();
  wire::LoadRequest without_initializer = LoadOrder("run-b");
  without_initializer.mutable_part(0)->clear_initializer();
  wire::LoadRequest too_large = AdamOrder();
  too_large.set_run_id("run-b");
  const std::pair<wire::LoadRequest, absl::StatusCode> cases[] = {
      {From(LoadOrder("run-b"), "/no/such/checkpoint"),
       absl::StatusCode::kNotFound},
      {without_optimizer, absl::StatusCode::kInvalidArgument},
      {without_initializer, absl::StatusCode::kInvalidArgument},
      {too_large, absl::StatusCode::kResourceExhausted}};
  for (const auto& [order, code] : cases) {
    EXPECT_THAT(ps.server.Load(order), StatusIs(code));
    EXPECT_EQ(ps.server.holding().run_id, "run-a");
    EXPECT_THAT(Values(ps), Each(-2));
  }
  EXPECT_EQ(ps.metrics.value_bytes.value(), kElements * sizeof(float));
  EXPECT_OK(ps.server.Load(LoadOrder("run-b")));
}

TEST(ParameterServerTest, OrdersForAnotherProcessOrOfAnOldChiefAreRefused) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  wire::LoadRequest for_another = LoadOrder("run-b");
  for_another.mutable_order()->set_incarnation(kIncarnation + 1);
  wire::LoadRequest of_old_chief = LoadOrder("run-b");
  of_old_chief.mutable_order()->set_chief_epoch(kChief - 1);
  for (const wire::LoadRequest& order : {for_another, of_old_chief}) {
    EXPECT_THAT(ps.server.Load(order),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    wire::SnapshotRequest snapshot;
    *snapshot.mutable_order() = order.order();
    EXPECT_THAT(ps.server.Snapshot(snapshot),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
  EXPECT_THAT(Values(ps), Each(-2));
}

// Whoever hears the number by which workers name the process, or a refusal,
// does not hear the one that orders show.
TEST(ParameterServerTest, WhoKnowsWhatWorkersKnowGivesNoOrders) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  for (const int64_t chief_epoch : {kChief, kChief + 1, int64_t{1} << 30}) {
    wire::LoadRequest load = LoadOrder();
    load.mutable_optimizer()->mutable_adam()->set_learning_rate(1e-30);
    load.mutable_order()->set_incarnation(PublicNumber(kIncarnation));
    load.mutable_order()->set_chief_epoch(chief_epoch);
    wire::PrepareSnapshotRequest hold;
    hold.set_run_id("run-a");
    *hold.mutable_order() = load.order();
    wire::SnapshotRequest snapshot;
    *snapshot.mutable_order() = load.order();
    for (const absl::Status& refusal :
         {ps.server.Load(load).status(),
          ps.server.PrepareSnapshot(hold).status(),
          ps.server.Snapshot(snapshot).status()}) {
      EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kFailedPrecondition,
                                    Not(HasSubstr("0000000077"))));
    }
  }
  EXPECT_OK(Push(ps, 2, 2));
  EXPECT_THAT(Values(ps), Each(-4));
  EXPECT_OK(ps.server.Load(LoadOrder())) << "it obeys its chief";
}

TEST(ParameterServerTest, TheNextChiefsJobIsTakenOverWithTheValues) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  wire::LoadRequest next = From(LoadOrder(), "/no/such/checkpoint");
  next.mutable_order()->set_chief_epoch(kChief + 1);
  next.set_seed(2);
  next.mutable_optimizer()->mutable_sgd()->set_learning_rate(10);
  next.mutable_part(0)->mutable_initializer()->mutable_glorot_uniform();
  ASSERT_OK(ps.server.Load(next));
  EXPECT_THAT(Values(ps), Each(-2));
  EXPECT_TRUE(IsDuplicate(Push(ps, 1, 2)));
  EXPECT_OK(Push(ps, 2, 2));
  EXPECT_THAT(Values(ps), Each(-22));
}

TEST(ParameterServerTest, AnotherLayoutOfTheRunIsLoadedAnew) {
  Ps ps;
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(Push(ps, 1, 2));
  wire::LoadRequest other = LoadOrder();
  other.mutable_order()->set_layout(kLayout + 1);
  ASSERT_OK(ps.server.Load(other));
  EXPECT_THAT(Values(ps), Each(0));
  EXPECT_EQ(ps.server.holding().layout, kLayout + 1);
}

TEST(ParameterServerTest, RefusesLoadsThatNoRepetitionMends) {
  Ps ps;
  wire::LoadRequest without_optimizer = LoadOrder();
  without_optimizer.clear_optimizer();
  wire::LoadRequest without_initializer = LoadOrder();
  without_initializer.mutable_part(0)->clear_initializer();
  wire::LoadRequest outside = LoadOrder();
  outside.mutable_part(0)->set_first_element(1);
  // LAMB needs the norms of whole variables.
  wire::LoadRequest by_whole_variables = LoadOrder();
  by_whole_variables.mutable_optimizer()->mutable_lamb();
  for (const wire::LoadRequest& order :
       {LoadOrder(""), without_optimizer, without_initializer, outside,
        by_whole_variables}) {
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
  const std::string root = testing::TempDir() + "/snapshots";
  CheckpointStore store = CheckpointStore::OpenForWriting(root).value();
  ps.server.Registered(kChief, root);
  wire::SnapshotRequest request;
  request.set_run_id("run-a");
  *request.mutable_order() = OrderHeader();
  request.set_directory(store.Begin(7).value());
  request.set_file_name("shard.sst");
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(ps.server.Load(LoadOrder("run-b")));
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK(ps.server.Load(LoadOrder()));
  EXPECT_OK(ps.server.Snapshot(request));
  EXPECT_THAT(
      ps.server.Snapshot(request),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("File exists")));
  request.set_file_name("../shard.sst");
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kInvalidArgument));
  request.set_file_name("shard.sst");
  request.set_directory(root);
  EXPECT_THAT(ps.server.Snapshot(request),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ps.metrics.snapshots_total.value(), 1);
  EXPECT_EQ(ps.metrics.failed_snapshots_total.value(), 3);
}

TEST(ParameterServerTest, ASnapshotThatWaitsForAStepEndsWhenThePsLeaves) {
  Ps ps;
  wire::LoadRequest order = LoadOrder();
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  ASSERT_OK(ps.server.Load(order));
  wire::SnapshotRequest request;
  ps.server.Registered(kChief, "/checkpoints");
  request.set_run_id("run-a");
  *request.mutable_order() = OrderHeader();
  request.set_directory("/checkpoints/.tmp-ckpt-000000000001-0");
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
}  // namespace parasol::parameter_server_testing
