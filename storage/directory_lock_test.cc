#include "storage/directory_lock.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

std::string FreshDirectory() {
  const std::string path =
      testing::TempDir() + "/lock_" +
      testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

TEST(DirectoryLockTest, ASharedDirectoryIsNotExcluded) {
  const std::string path = FreshDirectory();
  {
    ASSERT_OK_AND_ASSIGN(const DirectoryLock first, DirectoryLock::Share(path));
    ASSERT_OK_AND_ASSIGN(const DirectoryLock other, DirectoryLock::Share(path));
    EXPECT_FALSE(DirectoryLock::TryExclude(path).has_value());
  }
  EXPECT_TRUE(DirectoryLock::TryExclude(path).has_value());
}

TEST(DirectoryLockTest, AnExcludedDirectoryIsNotShared) {
  const std::string path = FreshDirectory();
  const std::optional<DirectoryLock> lock = DirectoryLock::TryExclude(path);
  ASSERT_TRUE(lock.has_value());
  EXPECT_THAT(DirectoryLock::Share(path),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(DirectoryLockTest, WhatIsNotADirectoryIsNamed) {
  const std::string file = FreshDirectory() + "/file";
  std::ofstream(file) << "x";
  EXPECT_THAT(
      DirectoryLock::Share(file),
      StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr(file)));
}

}  // namespace
}  // namespace parasol
