#include "coordinator/continued_chains.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_matchers.h"
#include "base/uri/uri_path.h"
#include "coordinator/order_executor.h"
#include "coordinator/testing/fake_ps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/remote/testing/memory_files.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// Two ps that know what has changed, and a job that lets one checkpoint of
// three be whole.
class IncrementOrdersTest : public testing::Test {
 protected:
  explicit IncrementOrdersTest(std::string directory = testing::TempDir() +
                                                       "/increment_orders_test")
      : directory_(std::move(directory)) {
    std::filesystem::remove_all(directory_);
    job_.mutable_checkpoint()->set_max_to_keep(2);
    job_.mutable_checkpoint()->set_full_every(3);
    ps0_.KnowChanges(true);
    ps1_.KnowChanges(true);
  }

  std::unique_ptr<OrderExecutor> NewExecutor() {
    std::vector<std::unique_ptr<PsClient>> clients;
    clients.push_back(ps0_.NewClient());
    clients.push_back(ps1_.NewClient());
    CoordinatorOptions options;
    options.job = job_;
    options.run_id = "run-a";
    options.shards = {{0, "", {}}, {1, "", {}}};
    return std::make_unique<OrderExecutor>(
        options, std::move(clients),
        *CheckpointStore::OpenForWriting(directory_));
  }

  absl::Status Write(OrderExecutor& executor, int64_t step) {
    CheckpointOrder order;
    order.manifest.set_global_step(step);
    order.manifest.set_run_id("run-a");
    order.incarnations = {10, 11};
    order.at_one_step = at_one_step_;
    return executor.WriteCheckpoint(order, absl::FromUnixSeconds(step))
        .status();
  }

  // The increment numbers of a checkpoint's files: "0 1 | 0".
  std::string ChainsAt(int64_t step) {
    const CheckpointStore store(directory_);
    const auto manifest = store.ReadManifest(step);
    if (!manifest.ok()) return manifest.status().ToString();
    EXPECT_OK(CheckpointReader::Open(store.PathOf(step)));
    std::vector<std::string> chains;
    for (const FileChain& chain : ChainsOf(*manifest)) {
      std::vector<uint32_t> numbers;
      for (int i = 0; i < chain.count; ++i) {
        numbers.push_back(manifest->file(chain.first + i).increment());
      }
      chains.push_back(absl::StrJoin(numbers, " "));
    }
    return absl::StrJoin(chains, " | ");
  }
  // The names in a checkpoint's directory, but for the manifest.
  std::vector<std::string> NamesAt(int64_t step) {
    std::vector<std::string> names = *ListDirectory(PathOf(step));
    std::erase(names, "MANIFEST");
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string PathOf(int64_t step) {
    return CheckpointStore(directory_).PathOf(step);
  }

  const std::string directory_;
  job::Job job_;
  bool at_one_step_ = false;
  FakePs ps0_;
  FakePs ps1_;
};

TEST_F(IncrementOrdersTest, OneCheckpointOfSoManyIsWhole) {
  const auto executor = NewExecutor();
  const std::vector<std::string> chains = {"0 | 0", "0 1 | 0 1",
                                           "0 1 2 | 0 1 2"};
  for (int64_t step = 0; step < 8; ++step) {
    ASSERT_OK(Write(*executor, step));
    EXPECT_EQ(ChainsAt(step), chains[step % 3]) << step;
  }
  EXPECT_THAT(
      NamesAt(7),
      ElementsAre("shard-00000-of-00002.1.sst", "shard-00000-of-00002.sst",
                  "shard-00001-of-00002.1.sst", "shard-00001-of-00002.sst"));
}

TEST_F(IncrementOrdersTest, OlderFilesAreLinkedAndOutliveTheirCheckpoints) {
  job_.mutable_checkpoint()->set_full_every(10);
  const auto executor = NewExecutor();
  for (int64_t step = 0; step < 9; ++step) ASSERT_OK(Write(*executor, step));
  EXPECT_THAT(executor->store().ListSteps(), IsOkAndHolds(ElementsAre(7, 8)));
  struct stat info;
  ASSERT_EQ(stat((PathOf(8) + "/shard-00000-of-00002.sst").c_str(), &info), 0);
  EXPECT_EQ(info.st_nlink, 2u);
  EXPECT_OK(executor->store().Verify(8));
}

TEST_F(IncrementOrdersTest, AShardThatDoesNotKnowWritesAll) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ps1_.KnowChanges(false);
  ASSERT_OK(Write(*executor, 2));
  EXPECT_EQ(ChainsAt(2), "0 1 | 0");
  EXPECT_THAT(NamesAt(2), ElementsAre("shard-00000-of-00002.1.sst",
                                      "shard-00000-of-00002.sst",
                                      "shard-00001-of-00002.1.sst"));
  ps1_.KnowChanges(true);
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 1 2 | 0 1");
  // When the longest chain is full, all shards begin new ones.
  ASSERT_OK(Write(*executor, 4));
  EXPECT_EQ(ChainsAt(4), "0 | 0");
}

TEST_F(IncrementOrdersTest, AfterAFailureChangesAreThoseSinceTheComplete) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ps1_.FailSnapshots(absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(Write(*executor, 2),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ps1_.FailSnapshots(absl::OkStatus());
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ps0_.last_snapshot().since(),
            "ckpt-000000000001/shard-00000-of-00002.sst");
  EXPECT_EQ(ChainsAt(3), "0 1 | 0 1");
}

TEST_F(IncrementOrdersTest, ACheckpointOfTheSameStepIsContinuedAndReplaced) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ASSERT_OK(Write(*executor, 1));
  EXPECT_EQ(ChainsAt(1), "0 1 | 0 1");
  EXPECT_OK(executor->store().Verify(1));
}

TEST_F(IncrementOrdersTest, AnotherChiefGoesOnWithTheChains) {
  ASSERT_OK(Write(*NewExecutor(), 1));
  ASSERT_OK(Write(*NewExecutor(), 2));
  EXPECT_EQ(ChainsAt(2), "0 1 | 0 1");
}

TEST_F(IncrementOrdersTest, WhatIsCutOffOrGoneIsNotContinued) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  std::filesystem::resize_file(PathOf(1) + "/shard-00001-of-00002.sst", 100);
  ASSERT_OK(Write(*executor, 2));
  EXPECT_EQ(ChainsAt(2), "0 | 0");
  EXPECT_OK(executor->store().Verify(2));
  std::filesystem::remove(PathOf(2) + "/shard-00001-of-00002.sst");
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 | 0");
  ASSERT_OK(Write(*executor, 4));
  EXPECT_EQ(ChainsAt(4), "0 1 | 0 1");
}

TEST_F(IncrementOrdersTest, WithoutLinksAllAreWhole) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  FailLinksOf(PathOf(1) + "/shard-00000-of-00002.sst", EXDEV);
  ASSERT_OK(Write(*executor, 2));
  FailLinksOf("", 0);
  EXPECT_EQ(ChainsAt(2), "0 | 0");
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 | 0");
}

TEST_F(IncrementOrdersTest, OneLinkThatFailsMakesOneShardWhole) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  FailLinksOf(PathOf(1) + "/shard-00001-of-00002.sst", EIO);
  ASSERT_OK(Write(*executor, 2));
  FailLinksOf("", 0);
  EXPECT_EQ(ChainsAt(2), "0 1 | 0");
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 1 2 | 0 1");
}

// A shard that stands at the cut waits for nothing that could be done before.
TEST_F(IncrementOrdersTest, OlderFilesAreLinkedBeforeTheCutIsChosen) {
  job_.mutable_parameter_server()->mutable_synchronous();
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  std::vector<std::string> names;
  ps1_.OnPrepare([&] {
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (!CheckpointStore::IsWorkingName(name)) continue;
      names = *ListDirectory(entry.path().string());
    }
  });
  ps0_.SetUpdates(2, 2);
  ps1_.SetUpdates(2, 2);
  at_one_step_ = true;
  ASSERT_OK(Write(*executor, 2));
  EXPECT_THAT(names, UnorderedElementsAre("shard-00000-of-00002.sst",
                                          "shard-00001-of-00002.sst"));
  EXPECT_EQ(ChainsAt(2), "0 1 | 0 1");
}

TEST_F(IncrementOrdersTest, NoFileOfADamagedCheckpointGoesIntoAnother) {
  const auto executor = NewExecutor();
  for (const int64_t step : {1, 2}) ASSERT_OK(Write(*executor, step));
  ps0_.CallDamaged(PathOf(2));
  EXPECT_THAT(executor->Load({{{0, 10}, {1, 11}}, true}), Each(IsOk()));
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 | 0");
}

TEST_F(IncrementOrdersTest, BehindADamagedCheckpointChainsGoOn) {
  const auto executor = NewExecutor();
  for (const int64_t step : {10, 20}) ASSERT_OK(Write(*executor, step));
  ps0_.CallDamaged(PathOf(20));
  EXPECT_THAT(executor->Load({{{0, 10}, {1, 11}}, true}), Each(IsOk()));
  // The damaged one shares files with the one before it, but not with 12.
  for (const int64_t step : {12, 14}) ASSERT_OK(Write(*executor, step));
  EXPECT_EQ(ChainsAt(12), "0 | 0");
  EXPECT_EQ(ChainsAt(14), "0 1 | 0 1");
}

TEST_F(IncrementOrdersTest, WithoutTheFieldAllAreWhole) {
  job_.mutable_checkpoint()->clear_full_every();
  const auto executor = NewExecutor();
  for (const int64_t step : {1, 2}) ASSERT_OK(Write(*executor, step));
  EXPECT_EQ(ChainsAt(2), "0 | 0");
  EXPECT_EQ(ps0_.last_snapshot().since(), "");
}

// In a store a file has one name.
class StoredIncrementOrdersTest : public IncrementOrdersTest {
 protected:
  StoredIncrementOrdersTest() : IncrementOrdersTest("s3://b/run") {}

  // The folders of the files that a checkpoint lists, "" for its own.
  std::vector<std::string> FoldersAt(int64_t step) {
    std::vector<std::string> folders;
    const auto manifest = CheckpointStore(directory_).ReadManifest(step);
    EXPECT_OK(manifest);
    for (const auto& file : manifest->file()) {
      folders.push_back(ParentPath(file.name()));
    }
    return folders;
  }
  size_t NumFiles(absl::string_view ending) const {
    const std::vector<std::string> paths = files_.Paths();
    return std::count_if(paths.begin(), paths.end(), [&](const auto& path) {
      return absl::StrContains(path, ending);
    });
  }

  MemoryFiles files_;
};

TEST_F(StoredIncrementOrdersTest, OneCheckpointOfSoManyIsWhole) {
  const auto executor = NewExecutor();
  const std::vector<std::string> chains = {"0 | 0", "0 1 | 0 1",
                                           "0 1 2 | 0 1 2"};
  for (int64_t step = 0; step < 8; ++step) {
    ASSERT_OK(Write(*executor, step));
    EXPECT_EQ(ChainsAt(step), chains[step % 3]) << step;
  }
  EXPECT_THAT(FoldersAt(6), ElementsAre("", ""));
  EXPECT_THAT(FoldersAt(7),
              ElementsAre("ckpt-000000000006", "", "ckpt-000000000006", ""));
  // 6 and 7 stay, and the chain of before, of which 5 is the last: it stays,
  // for it is whole when a file of the new one is not.
  EXPECT_THAT(executor->store().ListSteps(),
              IsOkAndHolds(ElementsAre(5, 6, 7)));
  EXPECT_EQ(NumFiles(".sst"), 2u * (3 + 2));
}

TEST_F(StoredIncrementOrdersTest, OlderFilesOutliveTheirCheckpoints) {
  job_.mutable_checkpoint()->set_full_every(10);
  const auto executor = NewExecutor();
  for (int64_t step = 0; step < 9; ++step) ASSERT_OK(Write(*executor, step));
  EXPECT_THAT(executor->store().ListSteps(), IsOkAndHolds(ElementsAre(7, 8)));
  EXPECT_EQ(NumFiles(".sst"), 2u * 9);
  EXPECT_EQ(NumFiles("MANIFEST"), 2u);
  EXPECT_OK(executor->store().Verify(8));
  EXPECT_TRUE(absl::StartsWith(ps0_.last_snapshot().since(),
                               "ckpt-000000000007/shard-00000-of-00002-"));
}

TEST_F(StoredIncrementOrdersTest, AFailedAttemptLeavesNothingAndCostsNoChain) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ps1_.FailSnapshots(absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(Write(*executor, 2),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(NumFiles(".sst"), 2u);
  ps1_.FailSnapshots(absl::OkStatus());
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 1 | 0 1");
  ASSERT_OK(Write(*NewExecutor(), 4));
  EXPECT_EQ(ChainsAt(4), "0 1 2 | 0 1 2");
  EXPECT_THAT(FoldersAt(4),
              ElementsAre("ckpt-000000000001", "ckpt-000000000003", "",
                          "ckpt-000000000001", "ckpt-000000000003", ""));
}

TEST_F(StoredIncrementOrdersTest,
       ACheckpointOfTheSameStepIsContinuedInItsFolder) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ASSERT_OK(Write(*executor, 1));
  EXPECT_EQ(ChainsAt(1), "0 1 | 0 1");
  EXPECT_THAT(FoldersAt(1), Each(""));
  EXPECT_OK(executor->store().Verify(1));
}

TEST_F(StoredIncrementOrdersTest, ACheckpointBehindIsWhole) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 5));
  ASSERT_OK(Write(*executor, 4));
  EXPECT_EQ(ChainsAt(4), "0 | 0");
}

TEST_F(StoredIncrementOrdersTest, WhatIsGoneIsNotContinued) {
  const auto executor = NewExecutor();
  ASSERT_OK(Write(*executor, 1));
  ASSERT_OK(Write(*executor, 2));
  for (const std::string& path : files_.Paths()) {
    if (absl::StrContains(path, "ckpt-000000000001/shard-00001")) {
      ASSERT_OK(files_.Remove(path));
    }
  }
  ASSERT_OK(Write(*executor, 3));
  EXPECT_EQ(ChainsAt(3), "0 | 0");
}

TEST_F(IncrementOrdersTest, FilesOfOtherNumbersOfShardsAreNotContinued) {
  durable::CheckpointManifest manifest;
  for (int i = 0; i < 2; ++i) manifest.add_file()->set_name(absl::StrCat(i));
  EXPECT_FALSE(ContinuedChains("/c/ckpt-1", manifest, 2, 2).empty());
  EXPECT_TRUE(ContinuedChains("/c/ckpt-1", manifest, 3, 2).empty());
  EXPECT_TRUE(ContinuedChains("/c/ckpt-1", manifest, 1, 2).empty());
  EXPECT_TRUE(ContinuedChains("/c/ckpt-1", manifest, 2, 1).empty());
}

}  // namespace
}  // namespace parasol
