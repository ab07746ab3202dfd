#include "cluster/checkpoint/checkpoint_argument.h"

#include <filesystem>
#include <fstream>

#include "base/status_matchers.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

TEST(CheckpointArgumentTest, DirectoryOfManyMeansItsNewest) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint model;
  model.step = 3;
  ASSERT_OK(model.Write(directory));
  model.step = 20;
  ASSERT_OK(model.Write(directory));
  EXPECT_THAT(CheckpointAt(directory), IsOkAndHolds(model.PathIn(directory)));
}

TEST(CheckpointArgumentTest, DirectoryOfACheckpointMeansItself) {
  const std::string directory = EmptyTestDirectory();
  ModelCheckpoint older;
  older.step = 3;
  ASSERT_OK(older.Write(directory));
  ASSERT_OK(ModelCheckpoint().Write(directory));
  EXPECT_THAT(CheckpointAt(older.PathIn(directory) + "/"),
              IsOkAndHolds(older.PathIn(directory)));
}

TEST(CheckpointArgumentTest, WhatIsNoCheckpointIsNamed) {
  const std::string directory = EmptyTestDirectory();
  EXPECT_THAT(CheckpointAt(directory),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr(directory + ": has no checkpoint")));
  EXPECT_THAT(CheckpointAt(directory + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  std::ofstream(directory + "/file") << "x";
  EXPECT_THAT(CheckpointAt(directory + "/file"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/file")));
}

TEST(CheckpointArgumentTest, DamagedCheckpointsAreNotTakenForNone) {
  const std::string directory = EmptyTestDirectory();
  ASSERT_OK(ModelCheckpoint().Write(directory));
  std::filesystem::resize_file(
      ModelCheckpoint().PathIn(directory) + "/MANIFEST", 10);
  EXPECT_THAT(CheckpointAt(directory),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr(directory)));
}

}  // namespace
}  // namespace parasol
