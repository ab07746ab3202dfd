#include "deploy/local/run_directory.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::MatchesRegex;

namespace fs = std::filesystem;

const absl::Time kNow = absl::FromUnixSeconds(1000000000);

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() { fs::remove_all(root_); }

  // Makes `count` runs, each changed an hour after the one before it.
  std::vector<std::string> MakeRuns(int count) {
    std::vector<std::string> runs;
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<std::string> run = MakeRunDirectory(root_, kNow);
      EXPECT_OK(run);
      std::ofstream(*run + "/MANIFEST") << "x";
      fs::last_write_time(*run, fs::file_time_type() + std::chrono::hours(i));
      runs.push_back(*run);
    }
    return runs;
  }

  const std::string root_ =
      testing::TempDir() + "/" +
      testing::UnitTest::GetInstance()->current_test_info()->name() + "/runs";
};

TEST_F(RunDirectoryTest, RootIsTheUsersDataDirectory) {
  EXPECT_EQ(RunsRoot("/data", "/home/a"), "/data/parasol/runs");
  EXPECT_EQ(RunsRoot("", "/home/a"), "/home/a/.local/share/parasol/runs");
  EXPECT_EQ(RunsRoot("data", "/home/a"), "/home/a/.local/share/parasol/runs");
  EXPECT_EQ(RunsRoot("", ""), "");
}

TEST_F(RunDirectoryTest, ARunHasADirectoryOfItsOwnNamedByItsTime) {
  ASSERT_OK_AND_ASSIGN(const std::string first, MakeRunDirectory(root_, kNow));
  ASSERT_OK_AND_ASSIGN(const std::string other, MakeRunDirectory(root_, kNow));
  EXPECT_NE(first, other);
  EXPECT_TRUE(fs::is_empty(first));
  EXPECT_THAT(first, MatchesRegex(".*/runs/run-20010909-014640-[A-Za-z0-9]+"));
}

TEST_F(RunDirectoryTest, ARootThatCannotBeMadeIsNamed) {
  const fs::path parent = fs::path(root_).parent_path();
  fs::create_directories(parent.parent_path());
  fs::remove_all(parent);
  std::ofstream(parent) << "a file";
  EXPECT_FALSE(MakeRunDirectory(root_, kNow).ok());
  EXPECT_THAT(MakeRunDirectory(root_, kNow).status().message(),
              testing::HasSubstr(root_));
  fs::remove(parent);
}

TEST_F(RunDirectoryTest, TheTenRunsThatWereChangedLastStay) {
  const std::vector<std::string> runs = MakeRuns(12);
  EXPECT_EQ(RemoveOldRuns(root_), 2u);
  EXPECT_FALSE(fs::exists(runs[0]));
  EXPECT_FALSE(fs::exists(runs[1]));
  for (size_t i = 2; i < runs.size(); ++i) EXPECT_TRUE(fs::exists(runs[i]));
  EXPECT_EQ(RemoveOldRuns(root_), 0u);
}

TEST_F(RunDirectoryTest, ARunThatIsInUseStays) {
  const std::vector<std::string> runs = MakeRuns(12);
  ASSERT_OK_AND_ASSIGN(const DirectoryLock in_use,
                       DirectoryLock::Share(runs[0]));
  EXPECT_EQ(RemoveOldRuns(root_), 1u);
  EXPECT_TRUE(fs::exists(runs[0] + "/MANIFEST"));
  EXPECT_FALSE(fs::exists(runs[1]));
}

TEST_F(RunDirectoryTest, OtherDirectoriesStay) {
  MakeRuns(11);
  const std::string mine = root_ + "/run-of-mine";
  fs::create_directories(mine);
  fs::last_write_time(mine, fs::file_time_type() - std::chrono::hours(1));
  const std::string elsewhere = fs::path(root_).parent_path() / "elsewhere";
  fs::create_directories(elsewhere);
  const std::string link = root_ + "/run-20010909-014640-linked";
  fs::create_directory_symlink(elsewhere, link);
  EXPECT_EQ(RemoveOldRuns(root_), 1u);
  EXPECT_TRUE(fs::exists(mine));
  EXPECT_TRUE(fs::exists(elsewhere));
  EXPECT_TRUE(fs::is_symlink(link));
}

TEST_F(RunDirectoryTest, ARootThatIsMissingHasNoOldRuns) {
  EXPECT_EQ(RemoveOldRuns(root_), 0u);
}

}  // namespace
}  // namespace parasol
