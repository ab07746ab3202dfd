#include "storage/tensor_files/staged_file.h"

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::TempDir;

std::string TestPath() {
  return ::testing::TempDir() + "/" +
         ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

TEST(StagedFileTest, OldFileStaysUntilTheCommit) {
  const std::string path = TestPath();
  ASSERT_OK(WriteFileDurably(path, "old"));
  ASSERT_OK_AND_ASSIGN(StagedFile file, StagedFile::Create(path));
  ASSERT_OK(file.Append("new"));
  EXPECT_THAT(ReadFile(path, 100), IsOkAndHolds("old"));
  ASSERT_OK(file.Commit());
  EXPECT_THAT(ReadFile(path, 100), IsOkAndHolds("new"));
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(StagedFileTest, WhatIsNotCommittedIsRemoved) {
  const std::string path = TestPath();
  {
    ASSERT_OK_AND_ASSIGN(StagedFile file, StagedFile::Create(path));
    ASSERT_OK(file.Append("new"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(StagedFileTest, LargeAndSmallPiecesStayInOrder) {
  const std::string path = TestPath();
  const std::string large(1 << 20, 'x');
  ASSERT_OK_AND_ASSIGN(StagedFile file, StagedFile::Create(path));
  ASSERT_OK(file.Append("a____"));
  ASSERT_OK(file.Append(large));
  ASSERT_OK(file.Append("b"));
  ASSERT_OK(file.Overwrite(1, "1234"));
  ASSERT_OK(file.Append("c"));
  EXPECT_EQ(file.size(), 7 + large.size());
  ASSERT_OK(file.Commit());
  EXPECT_THAT(ReadFile(path, 2 << 20), IsOkAndHolds("a1234" + large + "bc"));
}

TEST(StagedFileTest, OtherFilesBesideItAreLeftAlone) {
  const std::string path = TestPath();
  ASSERT_OK(WriteFileDurably(path + ".new", "the user's"));
  ASSERT_OK_AND_ASSIGN(StagedFile first, StagedFile::Create(path));
  ASSERT_OK_AND_ASSIGN(StagedFile second, StagedFile::Create(path));
  ASSERT_OK(first.Append("first"));
  ASSERT_OK(second.Append("second"));
  ASSERT_OK(second.Commit());
  EXPECT_THAT(ReadFile(path, 100), IsOkAndHolds("second"));
  ASSERT_OK(first.Commit());
  EXPECT_THAT(ReadFile(path, 100), IsOkAndHolds("first"));
  EXPECT_THAT(ReadFile(path + ".new", 100), IsOkAndHolds("the user's"));
}

TEST(StagedFileTest, ADeviceOrADirectoryIsNotReplaced) {
  for (const std::string& path : {std::string("/dev/null"), TempDir()}) {
    EXPECT_THAT(StagedFile::Create(path).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
}

TEST(StagedFileTest, ADirectoryIsMadeAndOneThatCannotBeIsNamed) {
  const std::string path = TestPath();
  ASSERT_OK(MakeDirectories(path));
  ASSERT_OK_AND_ASSIGN(StagedFile file,
                       StagedFile::Create(path + "/new/folder/x"));
  ASSERT_OK(file.Append("text"));
  ASSERT_OK(file.Commit());
  EXPECT_THAT(ReadFile(path + "/new/folder/x", 100), IsOkAndHolds("text"));
  const absl::Status status =
      StagedFile::Create(path + "/new/folder/x/y").status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr(path + "/new/folder/x"));
}

// Names in a directory.
size_t CountFiles(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(directory);
  EXPECT_OK(names);
  return names.ok() ? names->size() : 0;
}

TEST(StagedFileDeathTest, NothingStaysOfAProcessThatIsKilled) {
  const std::string directory = TestPath();
  ASSERT_OK(MakeDirectories(directory));
  {
    ASSERT_OK_AND_ASSIGN(const StagedFile file,
                         StagedFile::Create(directory + "/x"));
    if (CountFiles(directory) > 0) {
      GTEST_SKIP() << directory << " has no files without names";
    }
  }
  EXPECT_EXIT(
      {
        absl::StatusOr<StagedFile> file = StagedFile::Create(directory + "/x");
        if (file.ok() && file->Append(std::string(1 << 20, 'x')).ok()) {
          raise(SIGKILL);
        }
      },
      ::testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(CountFiles(directory), 0);
}

}  // namespace
}  // namespace parasol
