#include "storage/checkpoint_store.h"

#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/uri/uri_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/checkpoint_reader.h"
#include "storage/durable_file.h"
#include "storage/remote/testing/memory_files.h"
#include "storage/shard_writer.h"
#include "storage/testing/checkpoint_fixture.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;
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
  ASSERT_OK(store_.Prune(1));
  EXPECT_THAT(store_.ListSteps(), IsOkAndHolds(ElementsAre(10, 20)))
      << "20 may have files of 10";
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

// A directory of a store with checkpoints of one shard, whose increments list
// files of earlier ones.
class StoredChainTest : public testing::Test {
 protected:
  // Writes the checkpoint of `step` as a chief does: a whole one, or one of the
  // row of `step` that continues the newest.
  absl::Status Write(int64_t step, bool is_whole, int max_to_keep = 0) {
    ASSIGN_OR_RETURN(CheckpointStore store,
                     CheckpointStore::OpenForWriting(kRun));
    ASSIGN_OR_RETURN(const std::string working, store.Begin(step));
    durable::CheckpointManifest manifest;
    manifest.set_run_id("run");
    manifest.set_global_step(step);
    durable::CheckpointTable& table = *manifest.add_table();
    table.set_name("t");
    table.set_width(1);
    const std::string name = CheckpointStore::NameInWorking(working, "0.sst");
    ASSIGN_OR_RETURN(
        const auto writer,
        ShardWriter::Create(CheckpointStore::PathInWorking(working, name)));
    writer->SetWriter({.shard = 0, .num_shards = 1});
    std::vector<uint64_t> ids;
    for (int64_t id = is_whole ? 1 : step; id <= step; ++id) ids.push_back(id);
    RETURN_IF_ERROR(writer->AddRows(
        "t",
        {.updates = step,
         .ids = ids,
         .rows = std::vector<float>(ids.size(), static_cast<float>(step))}));
    if (!is_whole) {
      for (const durable::CheckpointFile& file : newest_.file()) {
        durable::CheckpointFile& listed = *manifest.add_file();
        listed = file;
        if (ParseListedName(file.name())->step.has_value()) continue;
        listed.set_name(absl::StrCat(CheckpointName(newest_.global_step()), "/",
                                     file.name()));
      }
      const durable::CheckpointFile& last = *newest_.file().rbegin();
      writer->SetBase({last.bytes(), last.crc32c()});
    }
    const int number = manifest.file_size();
    const absl::StatusOr<durable::CheckpointFile> file = writer->Finish();
    absl::Status status = file.status();
    if (file.ok()) {
      *manifest.add_file() = *file;
      manifest.mutable_file(number)->set_increment(number);
      status = store.Commit(working, manifest);
    }
    if (!status.ok()) {
      store.Abandon(working);
      return status;
    }
    newest_ = manifest;
    if (const absl::Status pruned = store.Prune(max_to_keep, step);
        !pruned.ok()) {
      LOG(WARNING) << pruned.message();
    }
    return absl::OkStatus();
  }

  // The rows of the checkpoint in a directory, as "id:value" from id 1 on.
  static absl::StatusOr<std::vector<std::string>> RowsIn(
      const std::string& path, const CheckpointReader* older = nullptr) {
    ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(path, older));
    return RowsOf(*reader);
  }
  static absl::StatusOr<std::vector<std::string>> RowsOf(
      const CheckpointReader& reader) {
    std::map<uint64_t, float> rows;
    RETURN_IF_ERROR(reader.ReadRows("t", [&rows](const RowBatch& batch) {
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        rows[batch.ids[i]] = batch.rows[i];
      }
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(reader.Verify());
    std::vector<std::string> shown;
    for (const auto& [id, value] : rows) {
      shown.push_back(absl::StrCat(id, ":", value));
    }
    return shown;
  }
  absl::StatusOr<std::vector<std::string>> NewestRows() {
    const CheckpointStore store(kRun);
    ASSIGN_OR_RETURN(const auto step, store.NewestComplete());
    if (!step.has_value()) return absl::NotFoundError("no checkpoint");
    RETURN_IF_ERROR(store.Verify(*step));
    return RowsIn(store.PathOf(*step));
  }
  // The only shard file of a checkpoint's own folder.
  std::string FileAt(int64_t step) const {
    for (const std::string& path : files_.Paths()) {
      if (absl::StartsWith(path, CheckpointStore(kRun).PathOf(step)) &&
          absl::EndsWith(path, ".sst")) {
        return path;
      }
    }
    return "";
  }

  static constexpr char kRun[] = "s3://b/run";
  MemoryFiles files_;
  durable::CheckpointManifest newest_;
};

TEST_F(StoredChainTest, OlderFilesStayAsLongAsAManifestListsThem) {
  ASSERT_OK(Write(1, /*is_whole=*/true, 1));
  ASSERT_OK(Write(2, false, 1));
  ASSERT_OK(Write(3, false, 1));
  const CheckpointStore store(kRun);
  EXPECT_THAT(store.ListSteps(), IsOkAndHolds(ElementsAre(3)));
  EXPECT_THAT(
      files_.Paths(),
      UnorderedElementsAre(FileAt(1), FileAt(2),
                           "s3://b/run/ckpt-000000000003/MANIFEST", FileAt(3)));
  EXPECT_THAT(NewestRows(), IsOkAndHolds(ElementsAre("1:1", "2:2", "3:3")));
  // A next owner, too, removes what no manifest lists, and nothing else.
  files_.Put("s3://b/run/ckpt-000000000001/0-ab.sst", "of an attempt");
  ASSERT_OK(CheckpointStore::OpenForWriting(kRun));
  EXPECT_EQ(files_.Paths().size(), 4u);
  ASSERT_OK(Write(4, true, 1));
  EXPECT_THAT(
      files_.Paths(),
      UnorderedElementsAre("s3://b/run/ckpt-000000000004/MANIFEST", FileAt(4)));
}

TEST_F(StoredChainTest, ABrokenLinkIsNamedAndItsChainPassedOver) {
  ASSERT_OK(Write(1, true));
  ASSERT_OK(Write(2, false));
  ASSERT_OK(Write(3, true));
  ASSERT_OK(Write(4, false));
  const CheckpointStore store(kRun);
  const std::string base = FileAt(3);
  ASSERT_OK(files_.Remove(base));
  const auto names_it =
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr(base), HasSubstr("an increment continues")));
  EXPECT_THAT(store.CheckComplete(4), names_it);
  EXPECT_THAT(CheckpointReader::Open(store.PathOf(4)).status(), names_it);
  EXPECT_THAT(NewestRows(), IsOkAndHolds(ElementsAre("1:1", "2:2")));
}

TEST_F(StoredChainTest, AnEndAtAnyPointLeavesAWholeChain) {
  using Fate = MemoryFiles::Fate;
  int points = 0;
  for (const Fate fate : {Fate::kDead, Fate::kRefused, Fate::kLost}) {
    bool was_reached = true;
    for (int at = 0; was_reached; ++at) {
      SCOPED_TRACE(absl::StrCat("fate ", static_cast<int>(fate), ", ", at));
      files_.OnRequest();
      ASSERT_OK(files_.RemoveFolder(kRun));
      ASSERT_OK(Write(1, true));
      ASSERT_OK(Write(2, false));
      int request = 0;
      was_reached = false;
      files_.OnRequest([&](const MemoryFiles::Request&) {
        if (request++ != at) return Fate::kDone;
        was_reached = true;
        return fate;
      });
      const absl::Status written = Write(3, false, 1);
      files_.OnRequest();
      const auto rows = NewestRows();
      ASSERT_OK(rows);
      EXPECT_THAT(*rows, AnyOf(ElementsAre("1:1", "2:2"),
                               ElementsAre("1:1", "2:2", "3:3")));
      if (written.ok()) {
        EXPECT_THAT(*rows, ElementsAre("1:1", "2:2", "3:3"));
      }
      ASSERT_OK(Write(5, true, 1));
      EXPECT_THAT(files_.Paths(), SizeIs(2));
      ++points;
    }
  }
  EXPECT_GT(points, 40);
}

// Whoever writes a newer form may list any file of before.
TEST_F(StoredChainTest, WhatANewerProgramMayListStays) {
  ASSERT_OK(Write(1, true));
  ASSERT_OK(Write(2, false));
  const std::string path = "s3://b/run/ckpt-000000000002/MANIFEST";
  durable::CheckpointManifest newer = newest_;
  newer.set_format_version(kFormatVersion + 1);
  files_.Put(path, EncodeManifest(newer));
  ASSERT_OK(files_.Remove("s3://b/run/ckpt-000000000001/MANIFEST"));
  files_.Put("s3://b/run/ckpt-000000000003/0-ab.sst", "of an attempt");
  ASSERT_OK(CheckpointStore::OpenForWriting(kRun));
  EXPECT_THAT(files_.Paths(), UnorderedElementsAre(FileAt(1), path, FileAt(2)));
  // A damaged one says nothing; its own folder stays as it is.
  files_.Put(path, "no manifest");
  const std::string kept = FileAt(2);
  ASSERT_OK(CheckpointStore::OpenForWriting(kRun));
  EXPECT_THAT(files_.Paths(), UnorderedElementsAre(path, kept));
}

TEST_F(StoredChainTest, AReaderTakesFilesThatAnOlderOneHas) {
  ASSERT_OK(Write(1, true));
  ASSERT_OK(Write(2, false));
  const CheckpointStore store(kRun);
  ASSERT_OK_AND_ASSIGN(auto older, CheckpointReader::Open(store.PathOf(2)));
  ASSERT_OK(Write(3, false, 1));
  std::vector<std::string> brought;
  files_.OnRequest([&brought](const MemoryFiles::Request& request) {
    if (request.what == "read" && absl::EndsWith(request.path, ".sst")) {
      brought.push_back(request.path);
    }
    return MemoryFiles::Fate::kDone;
  });
  ASSERT_OK_AND_ASSIGN(const auto newer,
                       CheckpointReader::Open(store.PathOf(3), older.get()));
  older.reset();
  EXPECT_THAT(RowsOf(*newer), IsOkAndHolds(ElementsAre("1:1", "2:2", "3:3")));
  EXPECT_THAT(brought, ElementsAre(FileAt(3)));
}

TEST_F(StoredChainTest, ACopyOnADiskIsReadAndKeepsWhatItNeeds) {
  ASSERT_OK(Write(1, true));
  ASSERT_OK(Write(2, false));
  ASSERT_OK(Write(3, false));
  const std::string directory = testing::TempDir() + "/copied_chain";
  std::filesystem::remove_all(directory);
  for (const std::string& path : files_.Paths()) {
    const std::string copy =
        absl::StrCat(directory, absl::StripPrefix(path, kRun));
    std::filesystem::create_directories(ParentPath(copy));
    std::ofstream(copy, std::ios::binary) << *files_.Read(path, 1 << 20);
  }
  CheckpointStore store(directory);
  EXPECT_OK(store.Verify(3));
  EXPECT_THAT(RowsIn(store.PathOf(3)),
              IsOkAndHolds(ElementsAre("1:1", "2:2", "3:3")));
  ASSERT_OK(store.Prune(1));
  EXPECT_THAT(RowsIn(store.PathOf(3) + "/"),
              IsOkAndHolds(ElementsAre("1:1", "2:2", "3:3")));
  std::filesystem::remove_all(store.PathOf(1));
  EXPECT_THAT(
      RowsIn(store.PathOf(3)).status(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("ckpt-000000000001/0-")));
}

// It is cut off before it knows that its manifest has come to the store, and
// the next owner goes on from there.
TEST_F(StoredChainTest, OneThatHasLostTheDirectoryAbandonsNothing) {
  ASSERT_OK(Write(1, true));
  CheckpointStore store(kRun);
  ASSERT_OK_AND_ASSIGN(const std::string working, store.Begin(2));
  const std::string file = CheckpointStore::PathInWorking(
      working, CheckpointStore::NameInWorking(working, "0.sst"));
  files_.Put(file, "its file");
  store.Abandon(working, [] {
    return absl::FailedPreconditionError("it belongs to another");
  });
  EXPECT_TRUE(files_.Has(file));
  store.Abandon(working);
  EXPECT_FALSE(files_.Has(file));
}

}  // namespace
}  // namespace parasol
