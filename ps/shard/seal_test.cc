// A ps that is told to stop: no acknowledged push is missing in the snapshot
// that follows.

#include <cstdint>
#include <filesystem>
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
using Pushes = ParameterServer::Pushes;

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

  absl::Status Snapshot() {
    ASSIGN_OR_RETURN(CheckpointStore store,
                     CheckpointStore::OpenForWriting(directory_));
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    ASSIGN_OR_RETURN(*request.mutable_directory(), store.Begin(++snapshots_));
    request.set_file_name("shard-00000-of-00001.sst");
    return server_.Snapshot(request).status();
  }

  const std::string directory_ = testing::TempDir() + "/seal";
  int64_t snapshots_ = 0;
  SimulatedClock clock_;
  MetricsRegistry registry_;
  PsMetrics metrics_{registry_};
  ParameterServer server_{{.task = "ps/1"}, clock_, metrics_};
};

TEST_F(SealTest, APsWithoutPushesHasNothingToLose) {
  EXPECT_EQ(server_.Seal(), Pushes::kNone);
  Load();
  EXPECT_EQ(server_.Seal(), Pushes::kNone);
}

TEST_F(SealTest, PushesAreUnsavedUntilASnapshotOfThemIsWritten) {
  Load();
  ASSERT_OK(Push(1));
  EXPECT_EQ(server_.Seal(), Pushes::kUnsaved);
  ASSERT_OK(Snapshot());
  EXPECT_EQ(server_.Seal(), Pushes::kSaved);
}

TEST_F(SealTest, APushAfterTheSnapshotIsUnsaved) {
  Load();
  ASSERT_OK(Push(1));
  ASSERT_OK(Snapshot());
  ASSERT_OK(Push(2));
  EXPECT_EQ(server_.Seal(), Pushes::kUnsaved);
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
  EXPECT_EQ(server_.Seal(), Pushes::kNone);
  Load();
  EXPECT_THAT(Push(1), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("the ps is leaving")));
}

TEST_F(SealTest, SynchronousStepsGoOnUntilTheCut) {
  Load(/*is_synchronous=*/true);
  ASSERT_OK(Push(1, /*is_synchronous=*/true));
  EXPECT_EQ(server_.Seal(), Pushes::kUnsaved);
  EXPECT_OK(Push(2, /*is_synchronous=*/true));
}

}  // namespace
}  // namespace parasol
