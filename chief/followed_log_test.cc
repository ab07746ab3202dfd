#include "chief/followed_log.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class FollowedLogTest : public testing::Test {
 protected:
  FollowedLogTest()
      : directory_(
            testing::TempDir() + "/log_" +
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  // Opens the log of a run behind `files`, and records more files.
  void Record(const std::string& run, FollowedFiles& files,
              const std::vector<std::string>& paths, int64_t records = 8) {
    ASSERT_OK_AND_ASSIGN(FollowedLog log,
                         FollowedLog::Open(directory_, run, files));
    for (const std::string& path : paths) {
      const auto file = files.Next(path, 1, records, 4);
      ASSERT_OK(log.Append(file));
      ASSERT_OK(files.Add(file));
    }
  }
  // Returns the files as the next chief has them that goes on from `files`.
  FollowedFiles Next(const std::string& run, FollowedFiles files) {
    EXPECT_OK(FollowedLog::Open(directory_, run, files));
    return files;
  }
  std::string Text() {
    return ReadFile(directory_ + "/followed.jsonl", 1 << 20).value();
  }

  const std::string directory_;
};

TEST_F(FollowedLogTest, TheNextChiefHasTheSameFiles) {
  FollowedFiles files;
  Record("run", files, {"a", "b", "c"});
  const FollowedFiles next = Next("run", FollowedFiles());
  EXPECT_EQ(next.batches(), 6);
  EXPECT_EQ(next.last_path(), "c");
}

TEST_F(FollowedLogTest, ItGoesOnBehindItsCheckpoint) {
  FollowedFiles files;
  Record("run", files, {"a", "b"});
  durable::FollowedSet set;
  files.AddTo(set);
  Record("run", files, {"c"});
  const FollowedFiles next = Next("run", FollowedFiles::Of(set).value());
  EXPECT_EQ(next.batches(), 6);
  EXPECT_EQ(next.last_path(), "c");
  EXPECT_THAT(Text(), HasSubstr("\"a\""))
      << "an older checkpoint may be gone on from";
}

TEST_F(FollowedLogTest, AFileWithoutRecordsIsNotTakenAgain) {
  FollowedFiles files;
  Record("run", files, {"a"}, /*records=*/0);
  EXPECT_EQ(Next("run", FollowedFiles()).last_path(), "a");
}

TEST_F(FollowedLogTest, OtherRunsAndDamagedLinesAreLeftOut) {
  FollowedFiles other;
  Record("other", other, {"x"});
  FollowedFiles files;
  Record("run", files, {"a"});
  EXPECT_THAT(Text(), Not(HasSubstr("other")));
  for (const char* line :
       {"{}", "[1]", "{\"file\":7,\"run_id\":\"run\"}", "{\"file\":\"a\"",
        "{\"file\":\"b\",\"first_batch\":\"2\",\"run_id\":\"run\"}"}) {
    ASSERT_OK(AppendLine(directory_ + "/followed.jsonl", line));
  }
  const FollowedFiles next = Next("run", FollowedFiles());
  EXPECT_EQ(next.last_path(), "a");
  EXPECT_EQ(next.batches(), 2);
}

TEST_F(FollowedLogTest, ALineThatWasCutOffIsNone) {
  FollowedFiles files;
  Record("run", files, {"a"});
  ASSERT_OK(Append(directory_ + "/followed.jsonl", "{\"file\":\"b\",\"byt"));
  Record("run", files, {"c"});
  EXPECT_EQ(Next("run", FollowedFiles()).last_path(), "c");
}

TEST_F(FollowedLogTest, ALineBehindAGapIsRemoved) {
  FollowedFiles files;
  Record("run", files, {"a", "b"});
  // The checkpoint knows nothing, and the log has lost its first line.
  const std::string text = Text();
  ASSERT_OK(ReplaceFileDurably(directory_ + "/followed.jsonl",
                               text.substr(text.find('\n') + 1)));
  EXPECT_EQ(Next("run", FollowedFiles()).batches(), 0);
  EXPECT_EQ(Text(), "");
}

TEST_F(FollowedLogTest, TheNextChiefHearsWhichFilesWereTaken) {
  FollowedFiles files;
  Record("run", files, {"a", "b", "c"});
  FollowedFiles next;
  ASSERT_OK_AND_ASSIGN(FollowedLog log,
                       FollowedLog::Open(directory_, "run", next));
  const FollowedLog::Known known = log.TakeKnown();
  EXPECT_THAT(known.paths, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(known.are_all);
  EXPECT_EQ(known.newest.size(), 3u);
  EXPECT_EQ(known.newest.back().path(), "c");
}

TEST_F(FollowedLogTest, TheNewestLinesAreKept) {
  FollowedFiles files;
  ASSERT_OK_AND_ASSIGN(FollowedLog log, FollowedLog::Open(directory_, "run",
                                                          files, {.lines = 3}));
  const auto lines = [&] {
    const std::string text = Text();
    return std::count(text.begin(), text.end(), '\n');
  };
  for (int i = 0; i < 40; ++i) {
    const auto file = files.Next(absl::StrCat(100 + i), 1, 8, 4);
    ASSERT_OK(log.Append(file));
    ASSERT_OK(files.Add(file));
    ASSERT_LE(lines(), 6);
    ASSERT_THAT(Text(), HasSubstr(absl::StrCat("\"", 100 + i, "\"")));
    ASSERT_GE(lines(), std::min(i + 1, 3));
  }
  durable::FollowedSet set;
  files.Forget(80);
  files.AddTo(set);
  ASSERT_OK_AND_ASSIGN(FollowedFiles next, FollowedFiles::Of(set));
  ASSERT_OK_AND_ASSIGN(
      log, FollowedLog::Open(directory_, "run", next, {.lines = 3}));
  EXPECT_EQ(lines(), 3);
  const FollowedLog::Known known = log.TakeKnown();
  EXPECT_THAT(known.paths, ElementsAre("137", "138", "139"));
  EXPECT_FALSE(known.are_all);
}

TEST_F(FollowedLogTest, AFileThatNoChiefWritesIsNamedAndStays) {
  FollowedFiles files;
  Record("run", files, {"a", "b"});
  const std::string before = Text();
  FollowedFiles next;
  EXPECT_THAT(
      FollowedLog::Open(directory_, "run", next, {.bytes = before.size() - 1})
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(directory_ + "/followed.jsonl has more than")));
  EXPECT_EQ(Text(), before);
  EXPECT_OK(FollowedLog::Open(directory_, "run", next, {.bytes = before.size()})
                .status());
}

TEST_F(FollowedLogTest, InAStoreItIsBesideTheCheckpointsWithTheirOptions) {
  MemoryFiles store;
  const std::string uri = "s3://bucket/ckpt?region=eu";
  FollowedFiles files;
  ASSERT_OK_AND_ASSIGN(FollowedLog log, FollowedLog::Open(uri, "run", files));
  ASSERT_OK(log.Append(files.Next("a", 1, 8, 4)));
  ASSERT_OK(FollowedLog::Open(uri, "run", files).status());
  EXPECT_EQ(files.last_path(), "a");
  EXPECT_THAT(store.Paths(),
              ElementsAre("s3://bucket/ckpt/followed.jsonl?region=eu"));
}

}  // namespace
}  // namespace parasol
