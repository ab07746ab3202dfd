#include "ml/input/format/whole_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/format/idx_writer.h"
#include "ml/input/testing/input_files.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr size_t kGiB = size_t{1} << 30;

// Writes a file of zeros that take no room on the disk.
std::string WriteHoles(const std::string& name, size_t bytes) {
  const std::string path = WriteTestFile(name, "");
  EXPECT_EQ(truncate(path.c_str(), static_cast<off_t>(bytes)), 0);
  return path;
}

TEST(WholeFileTest, IsItsBytesPackedOrNot) {
  const std::string bytes(3000000, 'x');
  EXPECT_THAT(ReadWholeFile(WriteTestFile("plain", bytes)),
              IsOkAndHolds(bytes));
  EXPECT_THAT(ReadWholeFile(WriteTestFile("packed", Gzip(bytes))),
              IsOkAndHolds(bytes));
  EXPECT_THAT(ReadWholeFile(WriteTestFile("empty", "")), IsOkAndHolds(""));
}

TEST(WholeFileTest, AStartIsCutAndSaysSo) {
  const std::string bytes = "0123456789";
  for (const std::string& path :
       {WriteTestFile("plain", bytes), WriteTestFile("packed", Gzip(bytes))}) {
    ASSERT_OK_AND_ASSIGN(const FileStart cut, ReadFileStart(path, 4));
    EXPECT_EQ(cut.bytes, "0123");
    EXPECT_FALSE(cut.is_whole);
    ASSERT_OK_AND_ASSIGN(const FileStart whole, ReadFileStart(path, 10));
    EXPECT_EQ(whole.bytes, bytes);
    EXPECT_TRUE(whole.is_whole);
  }
}

TEST(WholeFileTest, AFileMustFitTheMemoryThatIsFree) {
  EXPECT_OK(CheckFitsMemory("f", 5 * kGiB, std::nullopt));
  EXPECT_OK(CheckFitsMemory("f", kGiB, kGiB));
  EXPECT_THAT(CheckFitsMemory("f", 5 * kGiB, kGiB),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("f: needs at least 5120 MiB of memory, of "
                                 "which 1024 MiB are free")));
}

// Ten thousandth of it is what is on the disk.
TEST(WholeFileTest, AFileThatUnpacksToMoreThanTheMemoryIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its allocator ends the process";
#endif
  // Members that follow each other are one file.
  const std::string member = Gzip(std::string(64 << 20, '\0'));
  std::string bomb;
  for (int i = 0; i < 32; ++i) bomb += member;
  const std::string path = WriteTestFile("bomb.gz", bomb);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less = {.rlim_cur = kGiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const auto bytes = ReadWholeFile(path);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(bytes, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("bomb.gz: needs at least ")));
}

TEST(WholeFileTest, MoreThanATebibyteIsNotEvenBegun) {
  EXPECT_THAT(ReadWholeFile(WriteHoles("huge", 2048 * kGiB)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("huge: more than 1099511627776 bytes")));
}

TEST(WholeFileTest, WithoutMemoryTheFileIsNamed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "its allocator ends the process";
#endif
  const std::string path = WriteHoles("large", 8 * kGiB);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less = {.rlim_cur = 4 * kGiB, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &less), 0);
  const auto bytes = ReadWholeFile(path);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_THAT(bytes, StatusIs(absl::StatusCode::kInvalidArgument,
                              HasSubstr("large: needs at least 8192 MiB of "
                                        "memory, of which ")));
}

}  // namespace
}  // namespace parasol
