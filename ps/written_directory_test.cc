#include "ps/written_directory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::StartsWith;

std::string EmptyDirectory() {
  const std::string path = testing::TempDir() + "/written_directory";
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  return path;
}

TEST(WrittenDirectoryTest, ADirectoryIsTakenAndLeftEmpty) {
  const std::string directory = EmptyDirectory();
  EXPECT_OK(CheckWrittenDirectory("tier_dir", directory, /*make=*/false));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_OK(CheckWrittenDirectory("journal_dir", directory + "/a/b",
                                  /*make=*/true));
}

TEST(WrittenDirectoryTest, TheFlagAndTheReasonAreNamed) {
  const std::string file = EmptyDirectory() + "/file";
  std::ofstream(file) << "x";
  struct Case {
    std::string path;
    std::string want;
  };
  const Case cases[] = {
      {"/no/such/tier", "--d=/no/such/tier: No such file or directory; name a"},
      {file, absl::StrCat("--d=", file, ": Not a directory; ")},
      {"/proc", "--d=/proc: "},
      {"s3://bucket/x", "--d=s3://bucket/x: a store takes no such files; "},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(
        CheckWrittenDirectory("d", c.path, /*make=*/false),
        StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(c.want)));
  }
  for (const std::string& path : {file, absl::StrCat(file, "/below")}) {
    EXPECT_THAT(CheckWrittenDirectory("d", path, /*make=*/true),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith(absl::StrCat("--d=", path, ": "))));
  }
}

}  // namespace
}  // namespace parasol
