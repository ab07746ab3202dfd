#include "cluster/checkpoint/final_checkpoint.h"

#include <filesystem>
#include <string>

#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"

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

TEST_F(FinalCheckpointTest, ADirectoryThatIsNotNamedSaysNothing) {
  EXPECT_FALSE(HasFinalCheckpoint("", "run-a", job_));
}

}  // namespace
}  // namespace parasol
