#include "worker/group/state/state_orders.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "worker/group/testing/group_fixture.h"

namespace parasol {
namespace {

using group_testing::ContentsOf;
using group_testing::MakeState;
using group_testing::MakeStep;
using ::testing::HasSubstr;

constexpr char kRun[] = "run-a";
constexpr uint64_t kLayout = 5;
constexpr uint64_t kIncarnation = 77;

bool Never() { return false; }

class StateOrdersTest : public testing::Test {
 protected:
  StateOrdersTest()
      : directory_(
            std::filesystem::path(getenv("TEST_TMPDIR")) /
            testing::UnitTest::GetInstance()->current_test_info()->name()),
        store_(*CheckpointStore::OpenForWriting(directory_)),
        state_(MakeState()),
        orders_("worker/0", kIncarnation) {
    orders_.Registered(/*chief_epoch=*/3, directory_);
    orders_.Serve(state_.get(), kRun, kLayout);
  }

  template <typename Request>
  static Request Order() {
    Request request;
    request.set_run_id(kRun);
    request.mutable_order()->set_incarnation(kIncarnation);
    request.mutable_order()->set_chief_epoch(3);
    request.mutable_order()->set_layout(kLayout);
    return request;
  }
  wire::SnapshotRequest SnapshotOrder(const std::string& directory) const {
    auto request = Order<wire::SnapshotRequest>();
    request.set_directory(directory);
    request.set_file_name("shard-00000-of-00001.sst");
    return request;
  }

  // Writes a checkpoint as the chief does, and returns its path.
  std::string WriteCheckpoint(int64_t step) {
    const std::string working = *store_.Begin(step);
    auto request = SnapshotOrder(working);
    request.set_at_updates(step);
    const auto response = orders_.Snapshot(request, Never);
    EXPECT_OK(response);
    durable::CheckpointManifest manifest;
    manifest.set_run_id(kRun);
    manifest.set_global_step(step);
    *manifest.mutable_job() = state_->job();
    ContentsOfJob().AddTo(manifest);
    durable::CheckpointFile& file = *manifest.add_file();
    file.set_name(request.file_name());
    file.set_bytes(response->bytes());
    file.set_crc32c(response->crc32c());
    EXPECT_OK(store_.Commit(working, manifest));
    return store_.PathOf(step);
  }
  CheckpointContents ContentsOfJob() const {
    return *parasol::ContentsOf(state_->variables(), state_->job());
  }

  const std::filesystem::path directory_;
  CheckpointStore store_;
  std::unique_ptr<GroupState> state_;
  StateOrders orders_;
};

TEST_F(StateOrdersTest, WhatIsLoadedIsWhatWasSaved) {
  EXPECT_FALSE(orders_.HoldsState());
  ASSERT_OK(orders_.Load(Order<wire::LoadRequest>()));
  EXPECT_TRUE(orders_.HoldsState());
  ASSERT_OK(MakeStep(*state_, 1, 2));
  ASSERT_OK(MakeStep(*state_, 1, 3));
  ASSERT_OK_AND_ASSIGN(
      const auto held,
      orders_.PrepareSnapshot(Order<wire::PrepareSnapshotRequest>()));
  EXPECT_EQ(held.min_updates(), 2);
  EXPECT_EQ(held.max_updates(), 2);
  auto load = Order<wire::LoadRequest>();
  load.set_checkpoint(WriteCheckpoint(2));
  const auto want = ContentsOf(*state_);

  const auto other = MakeState();
  orders_.Serve(other.get(), kRun, kLayout);
  ASSERT_OK(orders_.Load(load));
  EXPECT_EQ(other->version().step, 2);
  EXPECT_EQ(ContentsOf(*other), want);
}

TEST_F(StateOrdersTest, AWorkerThatHasVariablesKeepsThem) {
  group_testing::Initialize(*state_, 9);
  auto load = Order<wire::LoadRequest>();
  load.set_checkpoint("/no/such/checkpoint");
  EXPECT_OK(orders_.Load(load));
  EXPECT_EQ(state_->version().step, 9);
}

TEST_F(StateOrdersTest, ACheckpointThatIsGoneIsNamed) {
  auto load = Order<wire::LoadRequest>();
  load.set_checkpoint(store_.PathOf(7));
  EXPECT_THAT(orders_.Load(load),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker/0")));
  EXPECT_FALSE(orders_.HoldsState());
}

TEST_F(StateOrdersTest, OrdersForOthersAndOfOlderChiefsAreRefused) {
  group_testing::Initialize(*state_);
  const auto refusal = [this](auto change) {
    auto request = Order<wire::PrepareSnapshotRequest>();
    change(request);
    return orders_.PrepareSnapshot(request).status();
  };
  EXPECT_OK(refusal([](auto&) {}));
  EXPECT_THAT(refusal([](auto& r) { r.mutable_order()->set_incarnation(78); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(refusal([](auto& r) { r.mutable_order()->set_chief_epoch(2); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(refusal([](auto& r) { r.mutable_order()->set_layout(6); }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(refusal([](auto& r) { r.set_run_id("run-b"); }),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("not on run run-b")));
}

TEST_F(StateOrdersTest, ASnapshotIsWrittenOnlyWhereCheckpointsAreMade) {
  group_testing::Initialize(*state_);
  EXPECT_THAT(orders_.Snapshot(SnapshotOrder("/tmp"), Never),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(StateOrdersTest, ARefusedOrderKeepsNoEpoch) {
  auto load = Order<wire::LoadRequest>();
  load.mutable_order()->set_chief_epoch(9);
  load.set_checkpoint(store_.PathOf(7));
  EXPECT_THAT(orders_.Load(load), StatusIs(absl::StatusCode::kNotFound));
  load.clear_checkpoint();
  load.set_global_step(int64_t{1} << 62);
  EXPECT_THAT(orders_.Load(load), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("global_step")));
  auto hold = Order<wire::PrepareSnapshotRequest>();
  hold.mutable_order()->set_chief_epoch(9);
  EXPECT_THAT(orders_.PrepareSnapshot(hold),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("no variables yet")));
  auto snapshot = SnapshotOrder(*store_.Begin(1));
  snapshot.mutable_order()->set_chief_epoch(9);
  snapshot.set_at_updates(-1);
  EXPECT_THAT(orders_.Snapshot(snapshot, Never),
              StatusIs(absl::StatusCode::kInvalidArgument));
  for (const int64_t epoch : {int64_t{1} << 62, int64_t{-1}}) {
    hold.mutable_order()->set_chief_epoch(epoch);
    EXPECT_THAT(orders_.PrepareSnapshot(hold),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_OK(orders_.Load(Order<wire::LoadRequest>()));
  EXPECT_OK(orders_.PrepareSnapshot(Order<wire::PrepareSnapshotRequest>()));
}

TEST_F(StateOrdersTest, UpdatesAreHeldUntilACompleteCheckpointHasThem) {
  ASSERT_OK(orders_.Load(Order<wire::LoadRequest>()));
  EXPECT_FALSE(orders_.HoldsUpdates());
  ASSERT_OK(MakeStep(*state_, 1, 2));
  EXPECT_TRUE(orders_.HoldsUpdates());
  WriteCheckpoint(1);
  EXPECT_FALSE(orders_.HoldsUpdates());
  ASSERT_OK(MakeStep(*state_, 1, 3));
  EXPECT_TRUE(orders_.HoldsUpdates());
}

TEST_F(StateOrdersTest, WithoutAModelOrdersAreForLater) {
  orders_.Serve(nullptr, "", 0);
  EXPECT_THAT(orders_.Load(Order<wire::LoadRequest>()),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace parasol
