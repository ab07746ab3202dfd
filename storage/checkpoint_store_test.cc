#include "storage/checkpoint_store.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"
#include "storage/testing/checkpoint_fixture.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::UnorderedElementsAre;

class CheckpointStoreTest : public CheckpointFixture {
 protected:
  CheckpointStoreTest() : store_(Open()) {}

  CheckpointStore Open() {
    auto store = CheckpointStore::OpenForWriting(root());
    EXPECT_OK(store);
    return *std::move(store);
  }

  // A working directory with one shard whose only element holds `value`, and
  // the manifest to commit it with.
  struct Unfinished {
    std::string directory;
    durable::CheckpointManifest manifest;
  };
  Unfinished Write(int64_t step, float value) {
    Unfinished checkpoint;
    auto directory = store_.Begin(step);
    EXPECT_OK(directory);
    checkpoint.directory = directory.value_or("");
    checkpoint.manifest.set_global_step(step);
    auto file = WriteShard(checkpoint.directory, "0.sst",
                           {{"a", 0, 0, 0, std::vector<float>{value}}});
    EXPECT_OK(file);
    *checkpoint.manifest.add_file() = file.value_or(durable::CheckpointFile());
    return checkpoint;
  }

  void Commit(int64_t step, float value = 0) {
    const Unfinished checkpoint = Write(step, value);
    ASSERT_OK(store_.Commit(checkpoint.directory, checkpoint.manifest));
  }

  absl::StatusOr<float> ValueAt(int64_t step) {
    ASSIGN_OR_RETURN(const auto reader,
                     CheckpointReader::Open(store_.PathOf(step)));
    float value = 0;
    RETURN_IF_ERROR(
        reader->ReadElements("a", 0, 0, absl::MakeSpan(&value, 1)).status());
    return value;
  }

  void Damage(int64_t step) {
    ASSERT_OK(WriteFileDurably(store_.PathOf(step) + "/0.sst", "damaged"));
  }

  CheckpointStore store_;
};

TEST_F(CheckpointStoreTest, ACommittedCheckpointIsListedAndReadable) {
  Commit(1200, 3.5f);

  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(1200)));
  EXPECT_EQ(store_.PathOf(1200), root() + "/ckpt-000000001200");
  EXPECT_THAT(ValueAt(1200), IsOkAndHolds(3.5f));
  ASSERT_OK_AND_ASSIGN(const auto manifest, store_.ReadManifest(1200));
  EXPECT_EQ(manifest.format_version(), 2);
  EXPECT_EQ(manifest.global_step(), 1200);
}

TEST_F(CheckpointStoreTest, StepsAreListedInOrderAndOtherNamesAreNot) {
  for (const int64_t step :
       {int64_t{20}, int64_t{3}, int64_t{0}, int64_t{1234567890123}}) {
    Commit(step);
  }
  for (const char* name : {"ckpt-12", "ckpt-00000000000x", "ckpt-0000000000012",
                           "checkpoint", ".tmp-ckpt-000000000001-0"}) {
    std::filesystem::create_directory(root() + "/" + name);
  }

  EXPECT_THAT(store_.ListSteps(),
              IsOkAndHolds(ElementsAre(0, 3, 20, 1234567890123)));
}

TEST_F(CheckpointStoreTest, AMissingDirectoryHasNoCheckpointsForAReader) {
  const CheckpointStore store(root() + "/none");

  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(store.NewestComplete(), IsOkAndHolds(std::nullopt));
  EXPECT_THAT(store.ReadManifest(1), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointStoreTest, NewestCompletePassesOverDamagedOnes) {
  Commit(10);
  Commit(20);
  Commit(30);
  Damage(30);

  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(20)));
  std::filesystem::remove(store_.PathOf(20) + "/MANIFEST");
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(10)));
  Damage(10);
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(std::nullopt));
}

TEST_F(CheckpointStoreTest, VerifyFindsABitThatSizesDontShow) {
  Commit(10, 3.5f);
  EXPECT_OK(store_.Verify(10));
  const std::string path = store_.PathOf(10) + "/0.sst";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(20);
  const auto byte = static_cast<char>(file.get());
  file.seekp(20);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  EXPECT_OK(store_.CheckComplete(10));
  EXPECT_THAT(store_.Verify(10),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  std::filesystem::remove(path);
  EXPECT_THAT(store_.Verify(10), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(store_.Verify(11), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointStoreTest, NewestCompleteDoesNotGoBackBehindAnUnknownFormat) {
  Commit(10);
  Commit(20);
  durable::CheckpointManifest manifest;
  manifest.set_format_version(kFormatVersion + 1);
  ASSERT_OK(WriteManifest(store_.PathOf(20), manifest));

  EXPECT_THAT(store_.NewestComplete(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CheckpointStoreTest, ANameOfAnotherStepIsDamage) {
  Commit(10);
  Commit(20);
  ASSERT_OK(Rename(store_.PathOf(20), store_.PathOf(2000)));

  EXPECT_THAT(store_.ReadManifest(2000),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of step 20")));
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(10)));
}

TEST_F(CheckpointStoreTest, WhatIsNoCheckpointIsPassedOverAndNotWaitedFor) {
  Commit(10);
  for (const int64_t step : {20, 30, 40, 50}) Commit(step);
  std::filesystem::remove_all(store_.PathOf(20));
  ASSERT_OK(WriteFileDurably(store_.PathOf(20), "a file"));
  const std::string manifest = store_.PathOf(30) + "/MANIFEST";
  std::filesystem::remove(manifest);
  ASSERT_EQ(mkfifo(manifest.c_str(), 0600), 0);
  std::filesystem::remove(store_.PathOf(40) + "/0.sst");
  std::filesystem::create_directory(store_.PathOf(40) + "/0.sst");
  std::filesystem::remove(store_.PathOf(50) + "/0.sst");
  ASSERT_EQ(mkfifo((store_.PathOf(50) + "/0.sst").c_str(), 0600), 0);

  for (const int64_t step : {20, 30, 40, 50}) {
    EXPECT_THAT(
        CheckpointReader::Open(store_.PathOf(step)).status(),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr(store_.PathOf(step))));
    EXPECT_THAT(store_.CheckComplete(step),
                StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(10)));
}

TEST_F(CheckpointStoreTest, WhatCantBeReadNowIsNotPassedOver) {
  Commit(10);
  Commit(20, 2);
  const std::string manifest = store_.PathOf(20) + "/MANIFEST";
  ASSERT_OK(Rename(manifest, root() + "/kept"));
  std::filesystem::create_symlink("/proc/self/mem", manifest);  // EIO
  EXPECT_THAT(store_.NewestComplete(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(manifest)));

  ASSERT_OK(Rename(root() + "/kept", manifest));
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(20)));
}

TEST_F(CheckpointStoreTest, ADirectoryThatWasRemovedIsMadeAgain) {
  Commit(10);
  std::filesystem::remove_all(root());
  Commit(20);

  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(20)));
}

TEST_F(CheckpointStoreTest, ACheckpointTakesThePlaceOfAFileOfItsName) {
  ASSERT_OK(WriteFileDurably(store_.PathOf(10), "a file"));
  Commit(10, 3);

  EXPECT_THAT(ValueAt(10), IsOkAndHolds(3));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010")));
}

TEST_F(CheckpointStoreTest, ACommitWhoseLastFsyncFailsRemovesNoCheckpoint) {
  Commit(10, 1);
  const Unfinished second = Write(10, 2);
  FailFsyncOf(std::filesystem::canonical(root()));
  const absl::Status failed = store_.Commit(second.directory, second.manifest);
  store_.Abandon(second.directory);
  // Whichever of the two a crash would leave: both are whole.
  const Unfinished third = Write(10, 3);
  EXPECT_THAT(store_.Commit(third.directory, third.manifest),
              StatusIs(absl::StatusCode::kUnavailable));
  store_.Abandon(third.directory);
  EXPECT_THAT(store_.Prune(1), StatusIs(absl::StatusCode::kUnavailable));
  FailFsyncOf("");

  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("can't fsync " + root())));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010",
                                                ".old-ckpt-000000000010")));
  EXPECT_THAT(ValueAt(10), IsOkAndHolds(2));
  ASSERT_OK(Rename(root() + "/.old-ckpt-000000000010", store_.PathOf(11)));
  EXPECT_TRUE(std::filesystem::exists(store_.PathOf(11) + "/0.sst"));
  EXPECT_TRUE(std::filesystem::exists(store_.PathOf(11) + "/MANIFEST"));
}

TEST_F(CheckpointStoreTest, ACrashBeforeTheRenameLeavesTheOlderCheckpoints) {
  Commit(10, 1);
  ASSERT_OK(store_.Begin(20));                    // crashed after step 1
  Write(20, 2);                                   // after step 2
  const Unfinished with_manifest = Write(20, 2);  // after step 4
  ASSERT_OK(WriteManifest(with_manifest.directory, with_manifest.manifest));

  store_ = Open();
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(10)));
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(Optional(10)));
  ASSERT_OK(store_.Prune(/*max_to_keep=*/0));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010")));
}

TEST_F(CheckpointStoreTest, WhatAWriterBeforeBeganCantBeCommittedAnyMore) {
  Commit(10, 1);
  const Unfinished late = Write(10, 2);
  CheckpointStore next = Open();

  EXPECT_THAT(store_.Commit(late.directory, late.manifest),
              StatusIs(absl::StatusCode::kDataLoss));
  store_.Abandon(late.directory);
  EXPECT_THAT(ValueAt(10), IsOkAndHolds(1));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010")));
}

TEST_F(CheckpointStoreTest, ACheckpointOfTheSameStepIsReplaced) {
  Commit(10, 1);
  Commit(10, 2);

  EXPECT_THAT(ValueAt(10), IsOkAndHolds(2));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010")));
}

TEST_F(CheckpointStoreTest, AReplacementThatCrashedHalfwayIsTakenBack) {
  Commit(10, 1);
  Write(10, 2);
  ASSERT_OK(Rename(store_.PathOf(10), root() + "/.old-ckpt-000000000010"));

  store_ = Open();
  EXPECT_THAT(ValueAt(10), IsOkAndHolds(1));
}

TEST_F(CheckpointStoreTest, AFileInAReplacedOnesPlaceDoesNotEndTheStart) {
  Commit(10, 1);
  ASSERT_OK(Rename(store_.PathOf(10), root() + "/.old-ckpt-000000000010"));
  ASSERT_OK(WriteFileDurably(store_.PathOf(10), "a file"));

  store_ = Open();
  EXPECT_TRUE(IsDirectory(root() + "/.old-ckpt-000000000010"));
  EXPECT_THAT(store_.NewestComplete(), IsOkAndHolds(std::nullopt));
}

TEST_F(CheckpointStoreTest, AReplacementThatCrashedAtItsEndIsCompleted) {
  Commit(10, 1);
  ASSERT_OK(Rename(store_.PathOf(10), root() + "/.old-ckpt-000000000010"));
  Commit(10, 2);

  store_ = Open();
  EXPECT_THAT(ValueAt(10), IsOkAndHolds(2));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000010")));
}

TEST_F(CheckpointStoreTest, AnAbandonedCheckpointLeavesNothing) {
  store_.Abandon(Write(10, 1).directory);

  EXPECT_THAT(ListDirectory(root()), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointStoreTest, FilesThatTheChiefDoesNotSeeAreNotCommitted) {
  Unfinished checkpoint = Write(10, 1);
  checkpoint.manifest.add_file()->set_name("1.sst");
  EXPECT_THAT(store_.Commit(checkpoint.directory, checkpoint.manifest),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1.sst")));

  checkpoint.manifest.mutable_file()->RemoveLast();
  checkpoint.manifest.mutable_file(0)->set_bytes(1);
  EXPECT_THAT(store_.Commit(checkpoint.directory, checkpoint.manifest),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("0.sst")));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointStoreTest, OnlyDirectoriesThatWereBegunAreCommitted) {
  EXPECT_THAT(store_.Commit(root() + "/other", durable::CheckpointManifest()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointStoreTest, PruneKeepsTheNewest) {
  for (int64_t step = 1; step <= 5; ++step) Commit(step);

  ASSERT_OK(store_.Prune(0));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(1, 2, 3, 4, 5)));
  ASSERT_OK(store_.Prune(2));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(4, 5)));
  ASSERT_OK(store_.Prune(7));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("ckpt-000000000004",
                                                "ckpt-000000000005")));
}

TEST_F(CheckpointStoreTest, PruneSparesSomeBesideTheNewest) {
  for (int64_t step = 1; step <= 5; ++step) Commit(step);

  ASSERT_OK(store_.Prune(2, /*newest=*/5, /*spared=*/{7, 2}));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(2, 4, 5)));
  ASSERT_OK(store_.Prune(2, /*newest=*/5, /*spared=*/{5}));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(2, 4, 5)));
}

TEST_F(CheckpointStoreTest, PruneDoesNotCountThoseAfterTheNewest) {
  for (const int64_t step : {5, 6, 10}) Commit(step);

  ASSERT_OK(store_.Prune(1, /*newest=*/6));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(6, 10)));
}

TEST_F(CheckpointStoreTest, PruneLeavesOtherPeoplesFiles) {
  ASSERT_OK(WriteFileDurably(root() + "/evaluations.jsonl", "{}"));
  ASSERT_OK(WriteFileDurably(root() + "/.tmp-of-somebody", ""));

  ASSERT_OK(store_.Prune(1));
  EXPECT_THAT(ListDirectory(root()),
              IsOkAndHolds(UnorderedElementsAre("evaluations.jsonl",
                                                ".tmp-of-somebody")));
}

TEST_F(CheckpointStoreTest, AReaderBesidesPruningAndReplacingSeesNoDamage) {
  Commit(10, 0);
  std::atomic<bool> done = false;
  std::atomic<int> opened = 0;
  std::thread reader([&] {
    while (!done) {
      const auto checkpoint = CheckpointReader::Open(store_.PathOf(10));
      if (checkpoint.ok()) {
        ++opened;
      } else {
        EXPECT_THAT(checkpoint.status(),
                    AnyOf(StatusIs(absl::StatusCode::kNotFound),
                          StatusIs(absl::StatusCode::kUnavailable)));
      }
    }
  });
  for (int i = 0; i < 50 || opened == 0; ++i) {
    Commit(10, i);
    if (i % 5 != 0) continue;
    Commit(11 + i);
    EXPECT_OK(store_.Prune(1));
    Commit(10, i);
    std::filesystem::remove_all(store_.PathOf(11 + i));
  }
  done = true;
  reader.join();
}

TEST_F(CheckpointStoreTest, ADirectoryIsMadeWithItsParents) {
  ASSERT_OK(CheckpointStore::OpenForWriting(root() + "/a/b"));

  EXPECT_TRUE(IsDirectory(root() + "/a/b"));
  EXPECT_THAT(ListDirectory(root() + "/a/b"), IsOkAndHolds(IsEmpty()));
}

TEST_F(CheckpointStoreTest, AFileInTheDirectorysPlaceIsNamed) {
  ASSERT_OK(WriteFileDurably(root() + "/file", ""));

  for (const std::string& path : {root() + "/file", root() + "/file/below"}) {
    EXPECT_THAT(CheckpointStore::OpenForWriting(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
}

TEST_F(CheckpointStoreTest, ADirectoryThatCantBeWrittenIsPermissionDenied) {
  // The kernel lets nobody, root included, make directories there.
  EXPECT_THAT(
      CheckpointStore::OpenForWriting("/sys/parasol"),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/sys/parasol")));
  EXPECT_THAT(CheckpointStore::OpenForWriting("/sys"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("checkpoint directory /sys")));
}

}  // namespace
}  // namespace parasol
