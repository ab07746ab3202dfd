#include "cluster/checkpoint/saved_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"

namespace parasol {
namespace {

class SavedFileTest : public testing::Test {
 protected:
  SavedFileTest() { std::filesystem::remove_all(directory_); }

  // Writes a file for the checkpoint of `step`, and notes it.
  void Save(int64_t step, int64_t progress) {
    auto store = CheckpointStore::OpenForWriting(directory_);
    ASSERT_OK(store);
    ASSERT_OK_AND_ASSIGN(working_, store->Begin(step));
    durable::CheckpointFile file;
    file.set_name("shard");
    file.set_bytes(1);
    file.set_crc32c(static_cast<uint32_t>(1000 * step + progress));
    std::ofstream(absl::StrCat(working_, "/shard")) << "x";
    manifest_.Clear();
    manifest_.set_global_step(step);
    manifest_.set_run_id("run-a");
    *manifest_.add_file() = file;
    saved_.Note(working_, "run-a", file, progress);
  }
  void Commit() {
    ASSERT_OK(CheckpointStore(directory_).Commit(working_, manifest_));
  }

  const std::string directory_ = testing::TempDir() + "/saved_file";
  std::string working_;
  durable::CheckpointManifest manifest_;
  SavedFile saved_;
};

TEST_F(SavedFileTest, UpdatesAreSavedWhenTheCheckpointIsComplete) {
  EXPECT_FALSE(saved_.Has(0));
  Save(10, /*progress=*/7);
  EXPECT_FALSE(saved_.Has(7));
  Commit();
  EXPECT_TRUE(saved_.Has(7));
  EXPECT_TRUE(saved_.Has(6));
  EXPECT_FALSE(saved_.Has(8)) << "an update has followed";
}

TEST_F(SavedFileTest, ACheckpointOfTheSameStepMayHaveAnotherFile) {
  Save(10, 7);
  Commit();
  Save(10, 9);
  EXPECT_FALSE(saved_.Has(7)) << "the newest file is that of a working one";
  manifest_.mutable_file(0)->set_crc32c(8);
  Commit();
  EXPECT_FALSE(saved_.Has(9));
}

TEST_F(SavedFileTest, AnEarlierFileStaysUntilThreeHaveFollowed) {
  Save(10, 7);
  Commit();
  saved_.Await();
  EXPECT_FALSE(saved_.Has(7)) << "another one is being written";
  EXPECT_TRUE(saved_.AnyHas(7));
  EXPECT_FALSE(saved_.AnyHas(8));
  Save(20, 7);
  EXPECT_FALSE(saved_.Has(7));
  EXPECT_TRUE(saved_.AnyHas(7))
      << "the checkpoint of the newest one has failed";
  Save(30, 7);
  EXPECT_TRUE(saved_.AnyHas(7));
  Save(40, 7);
  EXPECT_FALSE(saved_.AnyHas(7));
}

TEST_F(SavedFileTest, AnotherRunsCheckpointHasNothingOfIt) {
  Save(10, 7);
  manifest_.set_run_id("run-b");
  Commit();
  EXPECT_FALSE(saved_.Has(7));
}

TEST_F(SavedFileTest, WhatIsNoCheckpointIsPassedOver) {
  Save(10, 7);
  Commit();
  for (int step = 9990; step < 9999; ++step) {
    std::ofstream(CheckpointStore(directory_).PathOf(step)) << "a file";
  }
  EXPECT_TRUE(saved_.Has(7));
}

}  // namespace
}  // namespace parasol
