#include "cluster/checkpoint/final_checkpoint.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "storage/directory_owner.h"

namespace parasol {
namespace {

class FinalCheckpointTest : public testing::Test {
 protected:
  FinalCheckpointTest() {
    std::filesystem::remove_all(directory_);
    job_.mutable_end()->set_steps(100);
  }

  void Write(int64_t step, const std::string& run_id, bool final) {
    auto store = CheckpointStore::OpenForWriting(directory_);
    ASSERT_OK(store);
    ASSERT_OK_AND_ASSIGN(const std::string working, store->Begin(step));
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    manifest.set_run_id(run_id);
    manifest.set_final(final);
    *manifest.mutable_job() = job_;
    ASSERT_OK(store->Commit(working, manifest));
  }
  bool HasFinal() const {
    return HasFinalCheckpoint(directory_, "run-a", job_);
  }

  const std::string directory_ = testing::TempDir() + "/final_checkpoint";
  job::Job job_;
};

TEST_F(FinalCheckpointTest, TheLastCheckpointOfTheRunEndsTheJob) {
  EXPECT_FALSE(HasFinal()) << "there is no directory";
  Write(50, "run-a", /*final=*/false);
  EXPECT_FALSE(HasFinal());
  Write(100, "run-a", /*final=*/true);
  EXPECT_TRUE(HasFinal());
}

TEST_F(FinalCheckpointTest, AnotherRunsCheckpointSaysNothing) {
  Write(100, "run-b", /*final=*/true);
  EXPECT_FALSE(HasFinal());
}

TEST_F(FinalCheckpointTest, AFinalCheckpointOfAJobThatGoesOnSaysNothing) {
  Write(100, "run-a", /*final=*/true);
  job_.mutable_end()->set_steps(200);
  EXPECT_FALSE(HasFinal());
}

TEST_F(FinalCheckpointTest, WhatIsNoCheckpointIsPassedOver) {
  Write(100, "run-a", /*final=*/true);
  const CheckpointStore store(directory_);
  std::ofstream(store.PathOf(9999)) << "a file";
  std::filesystem::copy(store.PathOf(100), store.PathOf(9998),
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directory(store.PathOf(9997));
  std::filesystem::create_symlink("/no/such/place", store.PathOf(9996));
  EXPECT_TRUE(HasFinal());
  ASSERT_TRUE(NewestManifest(directory_).has_value());
  EXPECT_EQ(NewestManifest(directory_)->global_step(), 100);
}

TEST_F(FinalCheckpointTest, AJobHasEndedWhenItsOwnerHasLetGo) {
  EXPECT_FALSE(FindEndedJob(directory_).has_value());
  Write(50, "run-a", /*final=*/false);
  EXPECT_FALSE(FindEndedJob(directory_).has_value());
  Write(100, "run-a", /*final=*/true);
  EXPECT_FALSE(FindEndedJob(directory_).has_value()) << "no owner is known";
  durable::DirectoryOwner owner;
  owner.set_chief_epoch(3);
  ASSERT_OK(WriteOwner(directory_, owner));
  EXPECT_FALSE(FindEndedJob(directory_).has_value()) << "it may go on";
  owner.set_released(true);
  ASSERT_OK(WriteOwner(directory_, owner));
  ASSERT_TRUE(FindEndedJob(directory_).has_value());
  EXPECT_EQ(FindEndedJob(directory_)->run_id(), "run-a");
}

TEST_F(FinalCheckpointTest, ADirectoryThatIsNotNamedSaysNothing) {
  EXPECT_FALSE(HasFinalCheckpoint("", "run-a", job_));
}

}  // namespace
}  // namespace parasol
