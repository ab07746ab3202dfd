// A ps that is told to stop: no acknowledged push is missing in the snapshot
// that follows.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "cluster/rpc/payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/shard/ps_metrics.h"
#include "ps/testing/requests.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using Updates = ParameterServer::Updates;

constexpr int64_t kElements = 5;

class SealTest : public testing::Test {
 protected:
  SealTest() {
    std::filesystem::remove_all(directory_);
    server_.Registered(/*chief_epoch=*/0, directory_);
  }

  void Load(bool is_synchronous = false) {
    wire::LoadRequest order;
    order.set_run_id("run-a");
    order.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
    *order.add_part() = MakePart(0, "w", kElements, 0, kElements);
    order.set_num_shards(1);
    if (is_synchronous) {
      order.mutable_sync()->set_replicas_to_aggregate(1);
      order.mutable_sync()->set_total_replicas(1);
    }
    ASSERT_OK(server_.Load(order));
  }

  absl::Status Push(uint64_t sequence, bool is_synchronous = false) {
    wire::RequestHeader header;
    header.set_run_id("run-a");
    header.set_worker_incarnation(7);
    wire::Push& push = *header.add_operation()->mutable_push();
    push = MakePush(sequence, {MakeRange(0, 0, kElements)});
    if (is_synchronous) push.mutable_sync()->set_step(sequence - 1);
    const std::string bytes = Floats(kElements, 1);
    const auto request = ReceivedMessage::Create(header, {ViewOf(bytes)});
    PendingResult result;
    server_.Execute(request.value(), 0, result.Done());
    return result.is_done() ? result.Get().status()
                            : absl::DeadlineExceededError("it waits");
  }

  // Writes a snapshot for a checkpoint.
  absl::Status Snapshot(bool stay = false,
                        std::optional<int64_t> at_updates = std::nullopt) {
    ASSIGN_OR_RETURN(CheckpointStore store,
                     CheckpointStore::OpenForWriting(directory_));
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    request.set_stay(stay);
    if (at_updates) request.set_at_updates(*at_updates);
    ASSIGN_OR_RETURN(*request.mutable_directory(), store.Begin(++snapshots_));
    working_ = request.directory();
    request.set_file_name("shard-00000-of-00001.sst");
    ASSIGN_OR_RETURN(const wire::SnapshotResponse response,
                     server_.Snapshot(request));
    manifest_.Clear();
    manifest_.set_run_id("run-a");
    manifest_.set_global_step(snapshots_);
    durable::CheckpointFile& file = *manifest_.add_file();
    file.set_name(request.file_name());
    file.set_bytes(response.bytes());
    file.set_crc32c(response.crc32c());
    return absl::OkStatus();
  }
  // Completes the checkpoint of the last snapshot.
  absl::Status Commit() {
    return CheckpointStore(directory_).Commit(working_, manifest_);
  }

  const std::string directory_ = testing::TempDir() + "/seal";
  int64_t snapshots_ = 0;
  std::string working_;
  durable::CheckpointManifest manifest_;
  SimulatedClock clock_;
  MetricsRegistry registry_;
  PsMetrics metrics_{registry_};
  ParameterServer server_{{.task = "ps/1"}, clock_, metrics_};
};

TEST_F(SealTest, APsWithoutPushesHasNothingToLose) {
  EXPECT_EQ(server_.updates(), Updates::kNone);
  Load();
  EXPECT_EQ(server_.updates(), Updates::kNone);
}

TEST_F(SealTest, PushesAreUnsavedUntilACheckpointHasThem) {
  Load();
  ASSERT_OK(Push(1));
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
  ASSERT_OK(Snapshot());
  EXPECT_EQ(server_.updates(), Updates::kUnsaved) << "it may yet fail";
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kSaved);
}

TEST_F(SealTest, ACheckpointOfAnotherFileDoesNotHaveThem) {
  Load();
  ASSERT_OK(Push(1));
  ASSERT_OK(Snapshot());
  manifest_.mutable_file(0)->set_crc32c(manifest_.file(0).crc32c() + 1);
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
}

TEST_F(SealTest, APushAfterTheSnapshotIsUnsaved) {
  Load();
  ASSERT_OK(Push(1));
  ASSERT_OK(Snapshot());
  ASSERT_OK(Push(2));
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
}

TEST_F(SealTest, AShardThatStaysTakesNoPushUntilTheNextLoad) {
  Load();
  ASSERT_OK(Push(1));
  ASSERT_OK(Snapshot(/*stay=*/true));
  EXPECT_THAT(Push(2), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("leaves with a checkpoint")));
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kStaying);
  Load();
  EXPECT_OK(Push(2));
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
}

TEST_F(SealTest, ASynchronousShardThatStaysMakesNoUpdateBehindTheCut) {
  Load(/*is_synchronous=*/true);
  ASSERT_OK(Push(1, /*is_synchronous=*/true));
  ASSERT_OK(Snapshot(/*stay=*/true, /*at_updates=*/1));
  EXPECT_THAT(Push(2, /*is_synchronous=*/true),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  // The hold of a later checkpoint does not let go of it when it ends.
  ASSERT_OK(Snapshot(/*stay=*/false, /*at_updates=*/1));
  EXPECT_THAT(Push(2, /*is_synchronous=*/true),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kStaying);
  Load(/*is_synchronous=*/true);
  EXPECT_OK(Push(2, /*is_synchronous=*/true));
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
}

TEST_F(SealTest, NoPushIsAcknowledgedAnyMore) {
  Load();
  ASSERT_OK(Push(1));
  server_.Seal();
  EXPECT_THAT(Push(2), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("the ps is leaving")));
  EXPECT_OK(Snapshot());
}

TEST_F(SealTest, WhatIsLoadedWhileThePsLeavesIsSealedToo) {
  server_.Seal();
  Load();
  EXPECT_THAT(Push(1), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("the ps is leaving")));
}

TEST_F(SealTest, AShardWithoutUpdatesStaysToo) {
  Load();
  ASSERT_OK(Snapshot(/*stay=*/true));
  EXPECT_EQ(server_.updates(), Updates::kNone);
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kStaying);
}

// The checkpoint before has all of its updates, and not the others'.
TEST_F(SealTest, AShardThatStaysLeavesWithThatCheckpointAlone) {
  Load();
  ASSERT_OK(Push(1));
  ASSERT_OK(Snapshot());
  ASSERT_OK(Commit());
  EXPECT_EQ(server_.updates(), Updates::kSaved);
  ASSERT_OK(Snapshot(/*stay=*/true));
  manifest_.mutable_file(0)->set_crc32c(manifest_.file(0).crc32c() + 1);
  EXPECT_EQ(server_.updates(), Updates::kSaved);
}

TEST_F(SealTest, ALoadDoesNotUnsealAPsThatLeaves) {
  Load();
  ASSERT_OK(Snapshot(/*stay=*/true));
  server_.Seal();
  Load();
  EXPECT_THAT(Push(1), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("the ps is leaving")));
}

TEST_F(SealTest, SynchronousStepsGoOnUntilTheCut) {
  Load(/*is_synchronous=*/true);
  ASSERT_OK(Push(1, /*is_synchronous=*/true));
  server_.Seal();
  EXPECT_EQ(server_.updates(), Updates::kUnsaved);
  EXPECT_OK(Push(2, /*is_synchronous=*/true));
}

}  // namespace
}  // namespace parasol
