#include "cluster/trust/token_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/trust/job_token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;

constexpr char kChief[] = "127.0.0.1:8888";

std::string FreshFolder(const std::string& name) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), "/", name, "/parasol/tokens");
  std::filesystem::remove_all(folder);
  return folder;
}

mode_t ModeOf(const std::string& path) {
  struct stat found = {};
  EXPECT_EQ(stat(path.c_str(), &found), 0) << path;
  return found.st_mode & 0777;
}

TEST(TokenFoldersTest, DataHomeGoesBeforeHomeBeforeTmp) {
  EXPECT_THAT(TokenFolders("/data", "/home/a", 7),
              ElementsAre("/data/parasol/tokens", "/tmp/parasol-tokens-7"));
  EXPECT_THAT(TokenFolders("", "/home/a", 7),
              ElementsAre("/home/a/.local/share/parasol/tokens",
                          "/tmp/parasol-tokens-7"));
  EXPECT_THAT(TokenFolders("relative", "relative", 7),
              ElementsAre("/tmp/parasol-tokens-7"));
}

TEST(StoredTokenTest, TokenIsFoundByTheChiefsAddressAndIsPrivate) {
  const std::string folder = FreshFolder("found");
  ASSERT_OK_AND_ASSIGN(const StoredToken token,
                       StoredToken::Draw({folder}, kChief));
  EXPECT_THAT(FindToken({folder}, kChief), Optional(token.path()));
  EXPECT_EQ(FindToken({folder}, "127.0.0.1:8889"), std::nullopt);
  EXPECT_EQ(FindToken({}, kChief), std::nullopt);
  EXPECT_EQ(ModeOf(token.path()), 0600);
  EXPECT_EQ(ModeOf(folder), 0700);
  ASSERT_OK_AND_ASSIGN(const JobToken read, JobToken::Read(token.path()));
  EXPECT_EQ(read.JobName(), JobToken::Parse(token.text())->JobName());
}

TEST(StoredTokenTest, TokenEndsWithItsRun) {
  const std::string folder = FreshFolder("ends");
  {
    ASSERT_OK_AND_ASSIGN(StoredToken token,
                         StoredToken::Draw({folder}, kChief));
    const StoredToken moved = std::move(token);
    EXPECT_THAT(FindToken({folder}, kChief), Optional(moved.path()));
  }
  EXPECT_EQ(FindToken({folder}, kChief), std::nullopt);
}

TEST(StoredTokenTest, WhatAKilledRunHasLeftIsReplacedAndTheFolderTightened) {
  const std::string folder = FreshFolder("left");
  std::filesystem::create_directories(folder);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  const std::string left = absl::StrCat(folder, "/", kChief, ".token");
  std::ofstream(left) << "0123456789abcdef0123";
  ASSERT_OK_AND_ASSIGN(const StoredToken token,
                       StoredToken::Draw({folder}, kChief));
  EXPECT_EQ(token.path(), left);
  EXPECT_EQ(ModeOf(left), 0600);
  EXPECT_EQ(ModeOf(folder), 0700);
}

TEST(StoredTokenTest, ARunThatGoesOnKeepsItsToken) {
  const std::string folder = FreshFolder("two_runs");
  {
    ASSERT_OK_AND_ASSIGN(const StoredToken first,
                         StoredToken::Draw({folder}, kChief));
    // No other folder is tried: the chief's address is in use.
    EXPECT_THAT(
        StoredToken::Draw({folder, FreshFolder("two_runs_more")}, kChief)
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(kChief), HasSubstr(first.path()))));
    ASSERT_OK_AND_ASSIGN(const JobToken read, JobToken::Read(first.path()));
    EXPECT_EQ(read.JobName(), JobToken::Parse(first.text())->JobName());
    EXPECT_OK(StoredToken::Draw({folder}, "127.0.0.1:8889"));
  }
  EXPECT_OK(StoredToken::Draw({folder}, kChief));
}

TEST(StoredTokenTest, FolderThatCanBeMadeIsTaken) {
  const std::string folder = FreshFolder("second");
  ASSERT_OK_AND_ASSIGN(const StoredToken token,
                       StoredToken::Draw({"/proc/none", folder}, kChief));
  EXPECT_THAT(FindToken({"/proc/none", folder}, kChief),
              Optional(token.path()));
}

TEST(StoredTokenTest, FolderThatIsNoneIsNamed) {
  const std::string folder = FreshFolder("none");
  std::filesystem::create_directories(
      std::filesystem::path(folder).parent_path());
  std::ofstream(folder) << "a file";
  EXPECT_THAT(StoredToken::Draw({folder}, kChief).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder)));
}

TEST(TokenStoreTest, ATokenInAFolderThatOthersCanEnterIsNotFound) {
  const std::string folder = FreshFolder("open_folder");
  const StoredToken token = StoredToken::Draw({folder}, kChief).value();
  EXPECT_NE(FindToken({folder}, kChief), std::nullopt);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  EXPECT_EQ(FindToken({folder}, kChief), std::nullopt);
}

}  // namespace
}  // namespace parasol
