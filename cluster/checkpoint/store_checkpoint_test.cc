#include "cluster/checkpoint/store_checkpoint.h"

#include <climits>
#include <filesystem>
#include <set>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

absl::Status NoFiles(const std::string&, durable::CheckpointManifest&) {
  return absl::OkStatus();
}

class StoreCheckpointTest : public testing::Test {
 protected:
  StoreCheckpointTest() { std::filesystem::remove_all(directory_); }

  absl::Status Write(CheckpointStore& store, int64_t step,
                     WriteShardFiles write_files) {
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    *manifest.mutable_job() = job_;
    manifest.set_evaluation_due(due_.contains(step));
    return StoreCheckpoint(
        store, manifest, /*max_to_keep=*/2, write_files,
        [this] { return ++checks_ < lost_at_ ? absl::OkStatus() : lost_; },
        [this] { return kept_; });
  }

  // The check, counted from 1, from which on the directory has another owner.
  int lost_at_ = INT_MAX;
  absl::Status lost_ = absl::FailedPreconditionError("another owner");
  int checks_ = 0;
  KeptCheckpoints kept_;
  job::Job job_;
  // The steps of checkpoints that are marked as to be evaluated.
  std::set<int64_t> due_;

  const std::string directory_ = testing::TempDir() + "/store_checkpoint_test";
};

TEST_F(StoreCheckpointTest, TheNewestOnesAreKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  for (const int64_t step : {0, 10, 20}) {
    ASSERT_OK(Write(store, step, NoFiles));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> steps, store.ListSteps());
  EXPECT_THAT(steps, ElementsAre(10, 20));
}

TEST_F(StoreCheckpointTest, TheBestOneThatIsThereIsKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  for (const int64_t step : {10, 20}) ASSERT_OK(Write(store, step, NoFiles));
  kept_.best_first = {5, 10, 20};
  for (const int64_t step : {30, 40}) ASSERT_OK(Write(store, step, NoFiles));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(10, 30, 40)));
}

TEST_F(StoreCheckpointTest, TheOneThatIsBeingEvaluatedIsKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  kept_.evaluated_to = -1;
  for (const int64_t step : {0, 10, 20, 30, 40}) {
    ASSERT_OK(Write(store, step, NoFiles));
  }
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(0, 30, 40)));
  // The evaluator goes on with the next one that is there.
  kept_.evaluated_to = 0;
  for (const int64_t step : {50, 60}) ASSERT_OK(Write(store, step, NoFiles));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(30, 50, 60)));
}

TEST_F(StoreCheckpointTest, AllThatAJobMayWaitForAreKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  kept_.evaluated_to = 0;
  kept_.awaited = 2;
  for (const int64_t step : {0, 10, 20, 30, 40, 50}) {
    ASSERT_OK(Write(store, step, NoFiles));
  }
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(10, 20, 40, 50)));
}

TEST_F(StoreCheckpointTest, OneThatNobodyEvaluatesIsNotKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  job_.mutable_evaluation()->set_every_steps(20);
  due_ = {20};
  kept_.evaluated_to = 0;
  for (const int64_t step : {0, 10, 20, 30, 40}) {
    ASSERT_OK(Write(store, step, NoFiles));
  }
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(20, 30, 40)));
}

TEST_F(StoreCheckpointTest, NothingIsLeftOfOneThatFailed) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  EXPECT_THAT(
      Write(store, 10,
            [](const std::string& directory, durable::CheckpointManifest&) {
              EXPECT_TRUE(std::filesystem::is_directory(directory));
              return absl::ResourceExhaustedError("disk full");
            }),
      StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(StoreCheckpointTest, OneThatIsNoLongerTheOwnerTouchesNothing) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  for (const int64_t step : {1, 2}) ASSERT_OK(Write(store, step, NoFiles));

  lost_at_ = 1;
  checks_ = 0;
  EXPECT_THAT(Write(store, 3, NoFiles),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(1, 2)));

  // Lost while the shards write: what they wrote is not removed either.
  lost_at_ = 2;
  checks_ = 0;
  std::string written;
  EXPECT_THAT(
      Write(store, 3,
            [&](const std::string& directory, durable::CheckpointManifest&) {
              written = directory;
              return absl::UnavailableError("a ps is lost");
            }),
      StatusIs(absl::StatusCode::kFailedPrecondition, "another owner"));
  EXPECT_TRUE(std::filesystem::exists(written));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(1, 2)));

  // Lost behind the commit: nothing is pruned.
  lost_at_ = 3;
  checks_ = 0;
  ASSERT_OK(Write(store, 3, NoFiles));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(1, 2, 3)));
}

TEST_F(StoreCheckpointTest, AnOwnerThatCantBeCheckedNowCommitsNothing) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  lost_at_ = 2;
  lost_ = absl::UnavailableError("can't read CHIEF: Stale");
  EXPECT_THAT(Write(store, 3, NoFiles),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

}  // namespace
}  // namespace parasol
