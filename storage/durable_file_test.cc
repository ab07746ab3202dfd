#include "storage/durable_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/remote/testing/memory_files.h"
#include "storage/testing/disk_faults.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class DurableFileTest : public ::testing::Test {
 protected:
  DurableFileTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  const std::string root_ = ::testing::TempDir() + "/durable_file";
};

TEST_F(DurableFileTest, WhatWasWrittenIsRead) {
  ASSERT_OK(WriteFileDurably(root_ + "/f", "first, and longer"));
  ASSERT_OK(WriteFileDurably(root_ + "/f", "second"));

  EXPECT_THAT(ReadFile(root_ + "/f", 100), IsOkAndHolds("second"));
  EXPECT_THAT(FileSize(root_ + "/f"), IsOkAndHolds(6));
}

TEST_F(DurableFileTest, AppendedBytesComeAfterWhatIsThere) {
  ASSERT_OK(AppendDurably(root_ + "/f", "a line\n"));
  ASSERT_OK(AppendDurably(root_ + "/f", "another\n"));

  EXPECT_THAT(ReadFile(root_ + "/f", 100), IsOkAndHolds("a line\nanother\n"));
}

TEST_F(DurableFileTest, ALineThatWasCutOffTakesNoOtherWithIt) {
  ASSERT_OK(AppendLineDurably(root_ + "/f", "a line"));
  ASSERT_OK(AppendDurably(root_ + "/f", "cut o"));
  ASSERT_OK(AppendLineDurably(root_ + "/f", "another"));
  ASSERT_OK(AppendLineDurably(root_ + "/f", "the last"));

  EXPECT_THAT(ReadFile(root_ + "/f", 100),
              IsOkAndHolds("a line\ncut o\nanother\nthe last\n"));
}

TEST_F(DurableFileTest, ReadingStopsOneByteBehindTheLimit) {
  ASSERT_OK(WriteFileDurably(root_ + "/f", "123456"));

  EXPECT_THAT(ReadFile(root_ + "/f", 3), IsOkAndHolds("1234"));
  EXPECT_THAT(ReadFile(root_ + "/f", 6), IsOkAndHolds("123456"));
}

TEST_F(DurableFileTest, ErrorsNameThePathAndSayWhatToDo) {
  EXPECT_THAT(ReadFile(root_ + "/none", 9),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  ASSERT_OK(WriteFileDurably(root_ + "/f", ""));
  EXPECT_THAT(WriteFileDurably(root_ + "/f/g", ""),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("/f/g")));
  EXPECT_THAT(ListDirectory(root_ + "/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
  EXPECT_THAT(FileError(ENOSPC, "write", "/x"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "can't write /x: No space left on device"));
  EXPECT_THAT(FileError(EROFS, "write", "/x"),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(DurableFileTest, WhatIsNoRegularFileIsDamageAndNothingToWaitFor) {
  std::filesystem::create_directories(root_ + "/directory");
  ASSERT_EQ(mkfifo((root_ + "/pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", root_ + "/device");
  std::filesystem::create_symlink(root_ + "/loop", root_ + "/loop");
  ASSERT_OK(WriteFileDurably(root_ + "/file", ""));
  for (const char* name : {"directory", "pipe", "device", "loop", "file/x"}) {
    const std::string path = root_ + "/" + name;
    EXPECT_THAT(ReadFile(path, 9),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
    EXPECT_THAT(FileSize(path),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
}

TEST_F(DurableFileTest, OtherErrorsOfReadingMayPass) {
  // Reading a process's memory at 0 is EIO.
  std::filesystem::create_symlink("/proc/self/mem", root_ + "/f");
  EXPECT_THAT(ReadFile(root_ + "/f", 9),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("/f: Input/output error")));
  for (const int code : {EIO, ESTALE, EACCES, EPERM, EINTR, EMFILE, ENFILE,
                         ENOMEM, ETIMEDOUT, EAGAIN}) {
    EXPECT_THAT(ReadError(code, "read", "/x"),
                StatusIs(absl::StatusCode::kUnavailable));
  }
}

TEST_F(DurableFileTest, AFileIsReplacedAtOnce) {
  ASSERT_OK(ReplaceFileDurably(root_ + "/f", "first, and longer"));
  ASSERT_OK(ReplaceFileDurably(root_ + "/f", "second"));

  EXPECT_THAT(ReadFile(root_ + "/f", 100), IsOkAndHolds("second"));
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(UnorderedElementsAre("f")));
}

TEST_F(DurableFileTest, RemovingATreeThatIsNotThereIsFine) {
  EXPECT_OK(RemoveTree(root_ + "/none"));

  ASSERT_OK(WriteFileDurably(root_ + "/f", ""));
  EXPECT_THAT(ListDirectory(root_), IsOkAndHolds(UnorderedElementsAre("f")));
  EXPECT_OK(RemoveTree(root_));
  EXPECT_FALSE(IsDirectory(root_));
}

TEST_F(DurableFileTest, ExchangedDirectoriesHaveEachOthersContents) {
  std::filesystem::create_directories(root_ + "/a");
  std::filesystem::create_directories(root_ + "/b");
  ASSERT_OK(WriteFileDurably(root_ + "/a/f", "of a"));

  const absl::Status exchanged = Exchange(root_ + "/a", root_ + "/b");
  if (absl::IsUnimplemented(exchanged)) GTEST_SKIP() << exchanged;
  ASSERT_OK(exchanged);
  EXPECT_THAT(ReadFile(root_ + "/b/f", 100), IsOkAndHolds("of a"));
}

TEST_F(DurableFileTest, ALinkIsAnotherNameOfTheFile) {
  ASSERT_OK(WriteFileDurably(root_ + "/f", "bytes"));
  ASSERT_OK(Link(root_ + "/f", root_ + "/g"));
  EXPECT_THAT(ReadFile(root_ + "/g", 100), IsOkAndHolds("bytes"));
  EXPECT_THAT(Link(root_ + "/none", root_ + "/h"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none")));
}

TEST_F(DurableFileTest, AFileSystemThatHasNoLinksSaysSo) {
  ASSERT_OK(WriteFileDurably(root_ + "/f", "bytes"));
  for (const int code : {EPERM, EOPNOTSUPP, ENOSYS, EXDEV}) {
    FailLinksOf(root_ + "/f", code);
    EXPECT_THAT(Link(root_ + "/f", root_ + "/g"),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("/g")));
  }
  for (const int code : {EIO, ENOSPC, EMLINK}) {
    FailLinksOf(root_ + "/f", code);
    EXPECT_THAT(Link(root_ + "/f", root_ + "/g").code(),
                Not(absl::StatusCode::kUnimplemented));
  }
  FailLinksOf("", 0);
}

TEST_F(DurableFileTest, TheNamesOfDirectoriesThatAreMadeAreSynced) {
  const std::string root = std::filesystem::canonical(root_).string();
  for (const std::string& parent : {root, root + "/x", root + "/x/y"}) {
    ASSERT_OK(RemoveTree(root + "/x"));
    FailFsyncOf(parent);
    EXPECT_THAT(MakeDirectories(root + "/x/y/z"),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(parent)));
    FailFsyncOf("");
  }
  ASSERT_OK(MakeDirectories(root + "/x/y/z/"));
  ASSERT_OK(MakeDirectories(root + "/x/y/z"));
}

TEST_F(DurableFileTest, TheFolderThatCannotBeMadeIsNamed) {
  const std::string file = std::filesystem::canonical(root_).string() + "/f";
  ASSERT_OK(WriteFileDurably(file, "x"));
  EXPECT_THAT(
      MakeDirectories(file + "/y/z"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr(file + "/y/z: "), EndsWith(" (" + file + ")"))));
  EXPECT_THAT(
      MakeDirectories(file),
      StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("("))));
}

TEST_F(DurableFileTest, NothingStaysOfAReplacementThatFails) {
  const std::string path = testing::TempDir() + "/directory";
  ASSERT_OK(MakeDirectories(path));
  EXPECT_FALSE(ReplaceFileDurably(path, "x").ok());
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(DurableFileTest, FilesOfAStoreAreWholeAndHaveOneName) {
  MemoryFiles store;
  EXPECT_OK(MakeDirectories("s3://b/run"));
  EXPECT_OK(SyncDirectory("s3://b/run"));
  EXPECT_OK(ReplaceFileDurably("s3://b/run/BEST", "one"));
  EXPECT_THAT(ReadFile("s3://b/run/BEST", 100), IsOkAndHolds("one"));
  EXPECT_THAT(FileSize("s3://b/run/BEST"), IsOkAndHolds(3));
  EXPECT_THAT(ReadFile("s3://b/run/none", 100).status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(AppendLineDurably("s3://b/run/log", "a"));
  EXPECT_OK(AppendLine("s3://b/run/log", "b"));
  EXPECT_THAT(ReadFile("s3://b/run/log", 100), IsOkAndHolds("a\n"));
  EXPECT_OK(SyncAppended("s3://b/run/log"));
  EXPECT_THAT(ReadFile("s3://b/run/log", 100), IsOkAndHolds("a\nb\n"));
  EXPECT_OK(WriteFileDurably("s3://b/run/ckpt/x", ""));
  EXPECT_THAT(
      ListDirectory("s3://b/run"),
      IsOkAndHolds(testing::UnorderedElementsAre("BEST", "ckpt", "log")));
  EXPECT_THAT(Link("s3://b/run/log", "s3://b/run/other"),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_OK(RemoveTree("s3://b/run/ckpt"));
  EXPECT_THAT(ListDirectory("s3://b/run"),
              IsOkAndHolds(testing::UnorderedElementsAre("BEST", "log")));
}

}  // namespace
}  // namespace parasol
