#include "cluster/trust/job_token.h"

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

using testing::HasSubstr;
using testing::Ne;

constexpr char kSecret[] = "0123456789abcdef";

std::string FileWith(const std::string& name, const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

TEST(JobTokenTest, KeysDependOnTokenAndPurposeAlone) {
  const JobToken token = JobToken::Parse(kSecret).value();
  const JobToken other = JobToken::Parse("0123456789abcdeg").value();
  EXPECT_EQ(token.Derive("a"), JobToken::Parse(kSecret)->Derive("a"));
  EXPECT_THAT(token.Derive("a"), Ne(token.Derive("b")));
  EXPECT_THAT(token.Derive("a"), Ne(other.Derive("a")));
  EXPECT_THAT(token.JobName(), Ne(other.JobName()));
}

TEST(JobTokenTest, WhiteSpaceAroundATokenIsNotOfIt) {
  ASSERT_OK_AND_ASSIGN(
      const JobToken token,
      JobToken::Read(FileWith("token", absl::StrCat(" ", kSecret, "\r\n"))));
  EXPECT_EQ(token.JobName(), JobToken::Parse(kSecret)->JobName());
}

TEST(JobTokenTest, ShortLongAndMissingTokensAreRefusedWithTheFilesName) {
  for (const std::string& path :
       {FileWith("short", "secret"), FileWith("empty", ""),
        FileWith("long", std::string(5000, 'x')),
        absl::StrCat(testing::TempDir(), "/no_such_file"),
        testing::TempDir()}) {
    SCOPED_TRACE(path);
    EXPECT_THAT(JobToken::Read(path).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
}

TEST(JobTokenTest, NoMessageHasTheSecret) {
  const absl::Status status =
      JobToken::Read(FileWith("short", "hunter2")).status();
  EXPECT_THAT(status.message(), Not(HasSubstr("hunter2")));
}

TEST(JobTokenTest, DrawnTokensAreTokensAndDiffer) {
  const std::string drawn = JobToken::Draw();
  EXPECT_THAT(drawn, Ne(JobToken::Draw()));
  EXPECT_OK(JobToken::Parse(drawn).status());
}

}  // namespace
}  // namespace parasol
