#include "cluster/checkpoint/store_checkpoint.h"

#include <filesystem>

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
    return StoreCheckpoint(store, manifest, /*max_to_keep=*/2, write_files);
  }

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

}  // namespace
}  // namespace parasol
