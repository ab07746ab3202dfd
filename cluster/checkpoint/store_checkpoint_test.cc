#include "cluster/checkpoint/store_checkpoint.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_manifest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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
    manifest.set_created_unix_micros(absl::ToUnixMicros(now_));
    return StoreCheckpoint(
        store, manifest, retention_, write_files,
        [this] { return ++checks_ < lost_at_ ? absl::OkStatus() : lost_; },
        [this] { return kept_; });
  }

  // Writes checkpoints of which each third is whole, and the others increments.
  absl::Status WriteInChainsOfThree(CheckpointStore& store, int64_t number) {
    return Write(store, number,
                 [number](const std::string& directory,
                          durable::CheckpointManifest& manifest) {
                   for (int64_t i = number / 3 * 3; i <= number; ++i) {
                     durable::CheckpointFile& file = *manifest.add_file();
                     file.set_name(absl::StrCat(i, ".sst"));
                     file.set_increment(i % 3);
                     std::ofstream(absl::StrCat(directory, "/", file.name()));
                   }
                   return absl::OkStatus();
                 });
  }

  // The check, counted from 1, from which on the directory has another owner.
  int lost_at_ = INT_MAX;
  absl::Status lost_ = absl::FailedPreconditionError("another owner");
  int checks_ = 0;
  KeptCheckpoints kept_;
  Retention retention_ = {.max_to_keep = 2};
  // The time of each checkpoint.
  absl::Time now_ = absl::UnixEpoch();
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

TEST_F(StoreCheckpointTest, OneOfEverySoManyHoursIsKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  retention_.keep_every = absl::Hours(1);
  for (int64_t step = 0; step <= 100; step += 10) {
    ASSERT_OK(Write(store, step, NoFiles));
    now_ += absl::Minutes(25);
  }
  EXPECT_THAT(store.ListSteps(),
              IsOkAndHolds(ElementsAre(0, 30, 60, 80, 90, 100)));
}

TEST_F(StoreCheckpointTest, OneOfAnotherChainIsKept) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  for (int64_t number = 0; number < 8; ++number) {
    ASSERT_OK(WriteInChainsOfThree(store, number));
  }
  // Of the files of 5 the newest ones, 6 and 7, have none.
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(5, 6, 7)));
  ASSERT_OK(WriteInChainsOfThree(store, 8));
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(5, 7, 8)));
}

TEST_F(StoreCheckpointTest, OneOfTheChainBeforeOutlivesItsEnd) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  retention_.max_to_keep = 1;
  job_.mutable_checkpoint()->set_full_every(3);
  const std::vector<std::vector<int64_t>> kept = {{0},    {1},    {2},   {2, 3},
                                                  {2, 4}, {2, 5}, {5, 6}};
  for (size_t number = 0; number < kept.size(); ++number) {
    ASSERT_OK(WriteInChainsOfThree(store, number));
    EXPECT_THAT(store.ListSteps(), IsOkAndHolds(kept[number])) << number;
  }
}

TEST_F(StoreCheckpointTest, WhatIsNoCheckpointDoesNotEndTheRemoval) {
  ASSERT_OK_AND_ASSIGN(CheckpointStore store,
                       CheckpointStore::OpenForWriting(directory_));
  ASSERT_OK(WriteInChainsOfThree(store, 0));
  std::filesystem::create_directories(store.PathOf(1));
  std::filesystem::create_directories(store.PathOf(2));
  durable::CheckpointManifest newer;
  newer.set_format_version(kFormatVersion + 1);
  newer.set_global_step(2);
  ASSERT_OK(
      WriteFileDurably(store.PathOf(2) + "/MANIFEST", EncodeManifest(newer)));
  for (int64_t number = 3; number < 8; ++number) {
    ASSERT_OK(WriteInChainsOfThree(store, number));
  }
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(5, 6, 7)));
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

durable::CheckpointManifest WrittenAt(int64_t step, double hours) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  manifest.set_created_unix_micros(
      absl::ToUnixMicros(absl::UnixEpoch() + absl::Hours(hours)));
  return manifest;
}

// A checkpoint whose chain began with whole file `whole`.
durable::CheckpointManifest Chained(int64_t step, int whole, int increments) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  for (int i = 0; i <= increments; ++i) {
    durable::CheckpointFile& file = *manifest.add_file();
    file.set_name(absl::StrCat("shard.", i, ".sst"));
    file.set_bytes(100);
    file.set_crc32c(1000 * whole + i);
    file.set_increment(i);
  }
  return manifest;
}

TEST(RetentionTest, OneOfEverySoManyHoursStays) {
  const std::vector<durable::CheckpointManifest> manifests = {
      WrittenAt(0, 0),    WrittenAt(10, .9),  WrittenAt(20, 1.1),
      WrittenAt(30, 1.2), WrittenAt(40, 2.0), WrittenAt(50, 2.1),
      WrittenAt(60, 9),   WrittenAt(70, 9.5), WrittenAt(80, 10)};
  EXPECT_THAT(KeptByTime(manifests, absl::Hours(1)),
              ElementsAre(0, 20, 50, 60, 80));
  EXPECT_THAT(KeptByTime(manifests, absl::InfiniteDuration()), ElementsAre(0));
  EXPECT_THAT(KeptByTime({}, absl::Hours(1)), IsEmpty());
}

TEST(RetentionTest, OneThatStaysOnceStaysForGood) {
  std::vector<durable::CheckpointManifest> there;
  std::vector<int64_t> kept;
  for (int64_t step = 0; step < 200; ++step) {
    there.push_back(WrittenAt(step, step * .37));
    const std::vector<int64_t> now = KeptByTime(there, absl::Hours(1.5));
    for (const int64_t before : kept) {
      EXPECT_THAT(now, ::testing::Contains(before)) << step;
    }
    kept = now;
    // The two newest ones stay, and those.
    std::erase_if(there, [&](const durable::CheckpointManifest& manifest) {
      const int64_t old = manifest.global_step();
      return old + 2 <= step && !std::count(kept.begin(), kept.end(), old);
    });
  }
  EXPECT_GT(kept.size(), 35u);
}

TEST(RetentionTest, TheNewestOneOfAnotherChainIsFound) {
  std::vector<durable::CheckpointManifest> manifests = {
      Chained(0, 1, 0), Chained(10, 1, 1), Chained(20, 2, 0)};
  EXPECT_EQ(NewestApart(manifests), 10);
  manifests.push_back(Chained(30, 2, 1));
  EXPECT_EQ(NewestApart(manifests), 10);
  manifests.erase(manifests.begin(), manifests.begin() + 2);
  EXPECT_EQ(NewestApart(manifests), std::nullopt);
  EXPECT_EQ(NewestApart({}), std::nullopt);
  // Without increments nothing is shared.
  EXPECT_EQ(NewestApart({Chained(0, 1, 0), Chained(10, 2, 0)}), std::nullopt);
}

TEST(RetentionTest, TheJobSaysWhatStays) {
  job::CheckpointPolicy policy;
  policy.set_max_to_keep(3);
  EXPECT_EQ(RetentionOf(policy).keep_every, absl::InfiniteDuration());
  policy.set_keep_every_hours(.5);
  EXPECT_EQ(RetentionOf(policy).max_to_keep, 3);
  EXPECT_EQ(RetentionOf(policy).keep_every, absl::Minutes(30));
}

}  // namespace
}  // namespace parasol
