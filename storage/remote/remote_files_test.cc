#include "storage/remote/remote_files.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/remote/remote_directory.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Fate = MemoryFiles::Fate;

constexpr char kLog[] = "s3://b/run/log.jsonl";

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

TEST(RemoteFilesTest, AProgramWithoutStoresSaysSo) {
  EXPECT_THAT(
      RemoteFilesFor("s3://b/x").status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("s3://b/x")));
}

TEST(RemoteFilesTest, AppendedLinesAreWrittenTogether) {
  MemoryFiles store;
  EXPECT_OK(AppendRemote(kLog, "a\n", /*as_line=*/true, /*is_durable=*/false));
  EXPECT_FALSE(store.Has(kLog));
  EXPECT_OK(AppendRemote(kLog, "b\n", true, true));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("a\nb\n"));
  EXPECT_OK(AppendRemote(kLog, "c\n", true, false));
  EXPECT_OK(FlushRemote(kLog));
  EXPECT_OK(FlushRemote(kLog));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("a\nb\nc\n"));
}

TEST(RemoteFilesTest, ALineBehindOneThatWasCutOffIsALine) {
  MemoryFiles store;
  store.Put(kLog, "cut o");
  EXPECT_OK(AppendRemote(kLog, "a\n", /*as_line=*/true, /*is_durable=*/true));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("cut o\na\n"));
}

TEST(RemoteFilesTest, WhatCouldNotBeWrittenIsNotAppended) {
  MemoryFiles store;
  EXPECT_OK(AppendRemote(kLog, "kept\n", true, false));
  store.OnRequest([](const MemoryFiles::Request& request) {
    return request.what == "write" ? Fate::kRefused : Fate::kDone;
  });
  EXPECT_THAT(AppendRemote(kLog, "lost\n", true, true),
              StatusIs(absl::StatusCode::kUnavailable));
  store.OnRequest();
  EXPECT_OK(AppendRemote(kLog, "again\n", true, true));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("kept\nagain\n"));
}

TEST(RemoteFilesTest, EachAttemptToAppendIsAllowedAnewAndReadsTheFile) {
  MemoryFiles store;
  store.Put(kLog, "a\n");
  int asked = 0;
  store.OnRequest([&](const MemoryFiles::Request& request) {
    return request.what == "write" && asked < 3 ? Fate::kRefused : Fate::kDone;
  });
  EXPECT_OK(AppendRemote(kLog, "b\n", true, true, [&] {
    ++asked;
    return absl::OkStatus();
  }));
  EXPECT_EQ(asked, 3);
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("a\nb\n"));

  // A next owner has begun between two attempts.
  bool is_lost = false;
  store.OnRequest([&](const MemoryFiles::Request& request) {
    if (request.what != "write") return Fate::kDone;
    is_lost = true;
    store.Put(kLog, "a\nb\nof the next\n");
    return Fate::kRefused;
  });
  const auto check = [&] {
    return is_lost ? absl::FailedPreconditionError("lost") : absl::OkStatus();
  };
  EXPECT_OK(AppendRemote(kLog, "kept\n", true, false));
  EXPECT_THAT(AppendRemote(kLog, "c\n", true, true, check),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(FlushRemote(kLog, check),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  store.OnRequest();
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("a\nb\nof the next\n"));
  EXPECT_OK(FlushRemote(kLog));
}

// Whatever answers are lost, no line is there twice, and none is missing that
// was appended.
TEST(RemoteFilesTest, LostAnswersRepeatNoLine) {
  for (const int lost : {1, 2}) {
    for (const bool has_kept : {false, true}) {
      SCOPED_TRACE(absl::StrCat(lost, " lost, ", has_kept));
      MemoryFiles store;
      store.Put(kLog, "a\n");
      int writes = 0;
      store.OnRequest([&](const MemoryFiles::Request& request) {
        if (request.what != "write") return Fate::kDone;
        return writes++ < lost ? Fate::kLost : Fate::kDone;
      });
      if (has_kept) {
        EXPECT_OK(AppendRemote(kLog, "kept\n", true, false));
      }
      EXPECT_OK(AppendRemote(kLog, "b\n", true, true));
      EXPECT_OK(AppendRemote(kLog, "c\n", true, true));
      EXPECT_THAT(store.Read(kLog, 100),
                  IsOkAndHolds(has_kept ? "a\nkept\nb\nc\n" : "a\nb\nc\n"));
    }
  }
  // The call ends before it can know.
  MemoryFiles store;
  int reads = 0;
  store.OnRequest([&](const MemoryFiles::Request& request) {
    if (request.what == "write") return Fate::kLost;
    return ++reads == 2 ? Fate::kRefused : Fate::kDone;
  });
  EXPECT_OK(AppendRemote(kLog, "kept\n", true, false));
  EXPECT_THAT(AppendRemote(kLog, "b\n", true, true),
              StatusIs(absl::StatusCode::kUnavailable));
  store.OnRequest();
  EXPECT_OK(FlushRemote(kLog));
  EXPECT_OK(AppendRemote(kLog, "c\n", true, true));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("kept\nb\nc\n"));
}

TEST(RemoteFilesTest, WhatIsAppendedLaterComesBehindIt) {
  MemoryFiles store;
  store.OnRequest([](const MemoryFiles::Request& request) {
    return request.what == "write" ? Fate::kRefused : Fate::kDone;
  });
  EXPECT_OK(AppendRemote(kLog, "a\n", true, false));
  EXPECT_THAT(FlushRemote(kLog), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_OK(AppendRemote(kLog, "b\n", true, false));
  store.OnRequest();
  EXPECT_OK(FlushRemote(kLog));
  EXPECT_THAT(store.Read(kLog, 100), IsOkAndHolds("a\nb\n"));
}

TEST(RemoteFilesTest, AFileIsBroughtPieceByPiece) {
  MemoryFiles store;
  store.Put("s3://b/x", "0123456789");
  ASSERT_OK_AND_ASSIGN(const auto scratch, LocalScratch::Make("s3://b/x"));
  const std::string local = scratch->path() + "/x";
  ASSERT_OK(BringFile("s3://b/x", 10, local));
  EXPECT_EQ(ContentOf(local), "0123456789");
  EXPECT_THAT(BringFile("s3://b/x", 11, local),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(BringFile("s3://b/y", 11, local),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(RemoteFilesTest, ALocalScratchEndsWithItsUser) {
  MemoryFiles store;
  ASSERT_OK_AND_ASSIGN(auto first, LocalScratch::Make("s3://b/x"));
  const std::string path = first->path();
  const std::string abandoned =
      testing::TempDir() + "/memory_files/checkpoint-files-abandoned";
  std::filesystem::create_directories(abandoned);
  ASSERT_OK_AND_ASSIGN(const auto second, LocalScratch::Make("s3://b/x"));
  EXPECT_TRUE(std::filesystem::exists(path)) << "its process lives";
  EXPECT_FALSE(std::filesystem::exists(abandoned));
  first.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RemoteFilesTest, ALocalScratchThatCantBeMadeIsAnError) {
  MemoryFiles store;
  ASSERT_OK(LocalScratch::Make("s3://b/x"));
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status made = LocalScratch::Make("s3://b/x").status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(made, StatusIs(absl::StatusCode::kResourceExhausted,
                             AllOf(HasSubstr("memory_files/checkpoint-files-"),
                                   HasSubstr("Too many open files"))));
}

TEST(RemoteDirectoryTest, FilesAreListedByTheirFolders) {
  MemoryFiles store;
  store.Put("s3://b/run/BEST", "12");
  store.Put("s3://b/run/ckpt-1/MANIFEST", "1");
  store.Put("s3://b/run/tensorboard/train/x", "");
  store.Put("s3://b/running/x", "");
  store.Put("s3://b/run//x", "");
  EXPECT_THAT(
      ListRemote("s3://b/run"),
      IsOkAndHolds(UnorderedElementsAre(
          Pair("", UnorderedElementsAre(Pair("BEST", 2))),
          Pair("ckpt-1", UnorderedElementsAre(Pair("MANIFEST", 1))),
          Pair("tensorboard", UnorderedElementsAre(Pair("train/x", 0))))));
}

TEST(RemoteDirectoryTest, EachAttemptIsAllowedAnew) {
  MemoryFiles store;
  int attempts = 0;
  store.OnRequest([&](const MemoryFiles::Request&) {
    return ++attempts < 3 ? Fate::kRefused : Fate::kDone;
  });
  int asked = 0;
  EXPECT_OK(WriteChecked("s3://b/M", "m", [&] {
    ++asked;
    return absl::OkStatus();
  }));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(store.pauses(), 2);

  attempts = 0;
  EXPECT_THAT(WriteChecked("s3://b/N", "n",
                           [&] {
                             return attempts == 1
                                        ? absl::FailedPreconditionError("lost")
                                        : absl::OkStatus();
                           }),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_FALSE(store.Has("s3://b/N"));
}

}  // namespace
}  // namespace parasol
