#include "tool/checkpoint/checkpoint_list.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_store.h"
#include "storage/durable_file.h"
#include "storage/shard_writer.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'900'000'000);

class CheckpointListTest : public testing::Test {
 protected:
  std::string WriteModel(int64_t step) {
    ModelCheckpoint model;
    model.step = step;
    EXPECT_OK(model.Write(directory_));
    return model.PathIn(directory_);
  }

  void Flip(const std::string& path, size_t position) {
    ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path, 1 << 20));
    bytes[position % bytes.size()] ^= 1;
    ASSERT_OK(WriteFileDurably(path, bytes));
  }

  const std::string directory_ = EmptyTestDirectory();
};

TEST_F(CheckpointListTest, WhatManifestsSayIsListedInTheOrderOfSteps) {
  WriteModel(20);
  WriteModel(3);
  ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                       ListCheckpoints(directory_, Look::kEnds));
  EXPECT_EQ(list.directory, directory_);
  ASSERT_THAT(list.checkpoints, SizeIs(2));
  const CheckpointSummary& first = list.checkpoints[0];
  EXPECT_EQ(first.step, 3);
  EXPECT_EQ(first.written, absl::FromUnixSeconds(1'800'000'000));
  EXPECT_EQ(first.files, 2);
  EXPECT_EQ(first.bytes, *FileSize(first.path + "/ps-0.sst") +
                             *FileSize(first.path + "/ps-1.sst"));
  EXPECT_FALSE(list.HasDamage());
  const std::string text = ToText(list, absl::FromUnixSeconds(1'800'000'061));
  EXPECT_THAT(text, AllOf(HasSubstr("1m1s"), HasSubstr("whole")));
  const auto json =
      nlohmann::json::parse(ToJson(list, absl::FromUnixSeconds(1'800'000'061)));
  EXPECT_EQ(json["checkpoints"][1]["global_step"], 20);
  EXPECT_EQ(json["checkpoints"][1]["age_seconds"], 61);
  EXPECT_EQ(json["checkpoints"][1]["damage"].size(), 0);
}

TEST_F(CheckpointListTest, OneOfThemIsListedAlone) {
  const std::string path = WriteModel(20);
  WriteModel(3);
  for (const std::string& one : {path, path + "/"}) {
    ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                         ListCheckpoints(one, Look::kEnds));
    ASSERT_THAT(list.checkpoints, SizeIs(1)) << one;
    EXPECT_EQ(list.checkpoints[0].step, 20);
    EXPECT_EQ(list.directory, directory_);
  }
}

TEST_F(CheckpointListTest, AFlippedBitIsFoundWhenAllIsRead) {
  const std::string path = WriteModel(20);
  WriteModel(30);
  Flip(path + "/ps-1.sst", 60);
  ASSERT_OK_AND_ASSIGN(CheckpointList list,
                       ListCheckpoints(directory_, Look::kEnds));
  EXPECT_FALSE(list.HasDamage());
  ASSERT_OK_AND_ASSIGN(list, ListCheckpoints(directory_, Look::kAll));
  EXPECT_TRUE(list.HasDamage());
  EXPECT_THAT(list.checkpoints[0].damage,
              ElementsAre(HasSubstr(path + "/ps-1.sst")));
  EXPECT_THAT(list.checkpoints[1].damage, IsEmpty());
  EXPECT_THAT(ToText(list, kNow),
              AllOf(HasSubstr("damaged"), HasSubstr("ps-1.sst: ")));
}

TEST_F(CheckpointListTest, EachDamagedFileIsNamed) {
  const std::string path = WriteModel(20);
  Flip(path + "/ps-0.sst", 60);
  std::filesystem::remove(path + "/ps-1.sst");
  ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                       ListCheckpoints(directory_, Look::kAll));
  EXPECT_THAT(
      list.checkpoints[0].damage,
      ElementsAre(HasSubstr("ps-0.sst"), HasSubstr("ps-1.sst: is missing")));
}

TEST_F(CheckpointListTest, AManifestThatIsDamagedOrGoneIsDamage) {
  const std::string path = WriteModel(20);
  Flip(path + "/MANIFEST", 100);
  ASSERT_OK_AND_ASSIGN(CheckpointList list,
                       ListCheckpoints(directory_, Look::kEnds));
  EXPECT_EQ(list.checkpoints[0].step, 20);
  EXPECT_THAT(list.checkpoints[0].damage, ElementsAre(HasSubstr("MANIFEST")));
  EXPECT_THAT(ToText(list, kNow), HasSubstr(" - "));
  EXPECT_TRUE(
      nlohmann::json::parse(ToJson(list, kNow))["checkpoints"][0]["written"]
          .is_null());
  std::filesystem::remove(path + "/MANIFEST");
  ASSERT_OK_AND_ASSIGN(list, ListCheckpoints(directory_, Look::kEnds));
  EXPECT_THAT(list.checkpoints[0].damage,
              ElementsAre(HasSubstr("MANIFEST: is missing")));
}

TEST_F(CheckpointListTest, IncrementsAndJournalsAreListed) {
  CheckpointStore store = *CheckpointStore::OpenForWriting(directory_);
  const std::string working = *store.Begin(7);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(7);
  manifest.set_final(true);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto writer, ShardWriter::Create(absl::StrCat(
                                                working, "/", i, ".sst")));
    writer->SetWriter({.shard = 0, .num_shards = 1});
    writer->SetJournal({.journal = 5, .segment = 1 + static_cast<uint64_t>(i)});
    if (i > 0) {
      writer->SetBase(
          {manifest.file(i - 1).bytes(), manifest.file(i - 1).crc32c()});
    }
    ASSERT_OK_AND_ASSIGN(*manifest.add_file(), writer->Finish());
    manifest.mutable_file(i)->set_increment(i);
  }
  ASSERT_OK(store.Commit(working, manifest));
  ASSERT_OK_AND_ASSIGN(CheckpointList list,
                       ListCheckpoints(directory_, Look::kAll));
  EXPECT_EQ(list.checkpoints[0].increments, 2);
  EXPECT_EQ(list.checkpoints[0].journals, 1);
  EXPECT_THAT(list.checkpoints[0].damage, IsEmpty());
  EXPECT_THAT(ToText(list, kNow),
              HasSubstr("final, increment 2, journals of 1"));
  // The chain has another file in it.
  manifest.mutable_file()->SwapElements(0, 1);
  manifest.mutable_file(0)->set_increment(0);
  manifest.mutable_file(1)->set_increment(1);
  manifest.set_format_version(3);
  ASSERT_OK(WriteFileDurably(store.PathOf(7) + "/MANIFEST",
                             EncodeManifest(manifest)));
  ASSERT_OK_AND_ASSIGN(list, ListCheckpoints(directory_, Look::kAll));
  EXPECT_THAT(list.checkpoints[0].damage,
              ElementsAre(HasSubstr("is an increment, but")));
}

TEST_F(CheckpointListTest, OneThatIsReplacedMeanwhileIsNotDamaged) {
  const std::string path = WriteModel(20);
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    ModelCheckpoint model;
    model.step = 20;
    for (int i = 0; !is_over; ++i) {
      model.run_id = absl::StrCat("run-", i);
      model.kernel[0] = static_cast<float>(i);
      EXPECT_OK(model.Write(directory_));
    }
  });
  int looks = 0;  // at all of it
  for (int i = 0; i < 200; ++i) {
    ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                         ListCheckpoints(path, Look::kAll));
    EXPECT_THAT(list.checkpoints[0].damage, IsEmpty());
    const absl::Status& unreadable = list.checkpoints[0].unreadable;
    if (unreadable.ok()) {
      ++looks;
    } else {
      EXPECT_THAT(unreadable, StatusIs(absl::StatusCode::kUnavailable,
                                       HasSubstr("was replaced 5 times")));
    }
  }
  EXPECT_GT(looks, 0);
  is_over = true;
  writer.join();
}

TEST_F(CheckpointListTest, TheBestOneIsFoundWhereverTheUserStands) {
  const std::string path = WriteModel(20);
  const std::string name = std::filesystem::path(path).filename().string();
  ASSERT_OK(WriteFileDurably(
      directory_ + "/BEST",
      absl::StrCat(R"({"checkpoint":")", name,
                   R"(","global_step":20,"metric":"loss","value":0.5,)"
                   R"("run_id":"0123456789abcdef","chief_epoch":0})")));
  const std::string before = std::filesystem::current_path().string();
  const std::pair<std::string, std::string> cases[] = {
      {directory_, name}, {directory_, "./" + name}, {path, "."}, {path, "./"}};
  for (const auto& [at, one] : cases) {
    std::filesystem::current_path(at);
    const auto list = ListCheckpoints(one, Look::kEnds);
    std::filesystem::current_path(before);
    ASSERT_OK(list) << at << " " << one;
    EXPECT_TRUE(list->checkpoints[0].is_best) << at << " " << one;
  }
}

TEST_F(CheckpointListTest, AnEmptyDirectoryIsNoError) {
  ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                       ListCheckpoints(directory_, Look::kAll));
  EXPECT_EQ(ToText(list, kNow), "no checkpoints in " + directory_ + "\n");
  EXPECT_THAT(ListCheckpoints(directory_ + "/none", Look::kAll),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointListTest, NamesFromOutsideAreOneLine) {
  CheckpointStore store = *CheckpointStore::OpenForWriting(directory_);
  const std::string working = *store.Begin(7);
  durable::CheckpointManifest manifest;
  manifest.set_global_step(7);
  manifest.add_file()->set_name("a\n\x1b[31mb");
  ASSERT_OK(WriteFileDurably(working + "/a\n\x1b[31mb", ""));
  ASSERT_OK(store.Commit(working, manifest));
  ASSERT_OK_AND_ASSIGN(const CheckpointList list,
                       ListCheckpoints(directory_, Look::kAll));
  EXPECT_TRUE(list.HasDamage());
  EXPECT_THAT(ToText(list, kNow), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace parasol
