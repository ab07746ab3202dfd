#include "cluster/progress/training_journal.h"

#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"
#include "storage/remote/testing/memory_files.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

ProgressRecord At(int64_t step) {
  return {.global_step = step,
          .epoch = .5,
          .loss = .25,
          .learning_rate = .001,
          .examples_per_second = 3000,
          .elapsed = absl::Seconds(static_cast<double>(step) / 10)};
}

class TrainingJournalTest : public testing::Test {
 protected:
  TrainingJournalTest()
      : directory_(
            testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  std::unique_ptr<TrainingJournal> Open(const std::string& run,
                                        int64_t first_step) {
    auto journal = TrainingJournal::Open({.checkpoint_directory = directory_,
                                          .run_id = run,
                                          .first_step = first_step});
    EXPECT_OK(journal);
    return *std::move(journal);
  }
  std::string Lines() {
    return *ReadFile(directory_ + "/training.jsonl", 9999);
  }

  const std::string directory_;
};

TEST_F(TrainingJournalTest, ALineHasTheLossesOfNamedOutputs) {
  ProgressRecord record = At(10);
  record.output_losses = {.5, 2};
  EXPECT_THAT(
      ToJsonLine(record, "a", {"ctr", "cvr"}),
      HasSubstr(
          R"("loss":0.25,"ctr/loss":0.5,"cvr/loss":2.0,"learning_rate")"));
  // Not known before workers have reported them.
  record.output_losses.clear();
  EXPECT_THAT(ToJsonLine(record, "a", {"ctr", "cvr"}),
              HasSubstr(R"("loss":0.25,"learning_rate")"));
}

TEST_F(TrainingJournalTest, ALineHasRecordedValues) {
  ProgressRecord record = At(10);
  record.values = {{"reward", 2}, {"size", .5}};
  EXPECT_THAT(
      ToJsonLine(record, "a"),
      HasSubstr(R"("loss":0.25,"reward":2.0,"size":0.5,"learning_rate")"));
}

TEST_F(TrainingJournalTest, ALineHasAllFieldsInTheirOrder) {
  ProgressRecord record = At(1200);
  EXPECT_EQ(ToJsonLine(record, "a"),
            R"({"global_step":1200,"epoch":0.5,"loss":0.25,)"
            R"("learning_rate":0.001,"examples_per_second":3000.0,)"
            R"("seconds":120.0,"run_id":"a"})");
  record.staleness = 3;
  record.epoch = std::nullopt;
  record.loss = std::numeric_limits<double>::infinity();
  EXPECT_THAT(ToJsonLine(record, "a"),
              HasSubstr(R"("epoch":null,"loss":null,)"));
  EXPECT_THAT(ToJsonLine(record, "a"), HasSubstr(R"(,"staleness":3,)"));
}

TEST_F(TrainingJournalTest, ARunThatGoesBackDropsWhatComesAfter) {
  const auto first = Open("a", 0);
  for (const int64_t step : {10, 20, 30}) ASSERT_OK(first->Add(At(step), {}));
  ASSERT_OK(AppendDurably(directory_ + "/training.jsonl", "{\"global_"));
  const auto second = Open("a", 20);
  EXPECT_EQ(second->elapsed(), absl::Seconds(2));
  ASSERT_OK(second->Add(At(25), {}));
  EXPECT_EQ(Lines(),
            absl::StrCat(ToJsonLine(At(10), "a"), "\n", ToJsonLine(At(20), "a"),
                         "\n", ToJsonLine(At(25), "a"), "\n"));
}

// The library's own parser would take 1.6 GB for the first of these lines.
TEST_F(TrainingJournalTest, LinesThatAreVeryDeepOrLongAreDropped) {
  ASSERT_OK(Open("a", 0)->Add(At(10), {}));
  const std::string path = directory_ + "/training.jsonl";
  ASSERT_OK(AppendDurably(path, std::string(20'000'000, '[') + "\n"));
  std::string long_line = ToJsonLine(At(15), "a");
  long_line.insert(1, "\"x\":\"" + std::string(2'000'000, 'x') + "\",");
  ASSERT_OK(AppendDurably(path, long_line + "\n"));
  const auto journal = Open("a", 20);
  EXPECT_EQ(journal->elapsed(), absl::Seconds(1));
  EXPECT_EQ(Lines(), absl::StrCat(ToJsonLine(At(10), "a"), "\n"));
}

// A process that goes on behind the last line has not seen what is between.
TEST_F(TrainingJournalTest, ALineSaysWhereItBeginsIfNotAtTheOneBefore) {
  const auto between = [](int64_t from, int64_t step) {
    ProgressRecord record = At(step);
    record.from_step = from;
    return record;
  };
  {
    const auto journal = Open("a", 0);
    ASSERT_OK(journal->Add(between(0, 10), {}));
    ASSERT_OK(journal->Add(between(10, 20), {}));
    ASSERT_OK(journal->Add(between(20, 27), {}));
  }
  // Twice within one epoch.
  ASSERT_OK(Open("a", 24)->Add(between(24, 26), {}));
  {
    const auto journal = Open("a", 26);
    ASSERT_OK(journal->Add(between(28, 30), {}));
    ASSERT_OK(journal->Add(between(30, 40), {}));
  }
  // At the end of an epoch whose line is there.
  ASSERT_OK(Open("a", 40)->Add(between(40, 50), {}));
  EXPECT_EQ(Lines(),
            absl::StrCat(ToJsonLine(At(10), "a"), "\n", ToJsonLine(At(20), "a"),
                         "\n", ToJsonLine(between(24, 26), "a"), "\n",
                         ToJsonLine(between(28, 30), "a"), "\n",
                         ToJsonLine(At(40), "a"), "\n", ToJsonLine(At(50), "a"),
                         "\n"));
  EXPECT_THAT(Lines(), HasSubstr(R"({"global_step":26,"from_step":24,)"));
}

TEST_F(TrainingJournalTest, ANewRunBeginsAnew) {
  ASSERT_OK(Open("a", 0)->Add(At(10), {}));
  const auto journal = Open("b", 0);
  EXPECT_EQ(journal->elapsed(), absl::ZeroDuration());
  EXPECT_EQ(Lines(), "");
}

TEST_F(TrainingJournalTest, EventFilesAreBesideThem) {
  ASSERT_OK(Open("a", 5)->Add(At(10), absl::FromUnixSeconds(7)));
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> names,
                       ListDirectory(directory_ + "/tensorboard/train"));
  ASSERT_THAT(names, SizeIs(1));
  const auto bytes =
      ReadFile(directory_ + "/tensorboard/train/" + names[0], 9999);
  const absl::Time now = absl::FromUnixSeconds(7);
  EXPECT_THAT(
      bytes,
      IsOkAndHolds(absl::StrCat(
          FrameRecord(VersionEvent(now)), FrameRecord(StartEvent(now, 6)),
          FrameRecord(ScalarEvent(now, 10, "loss", .25)),
          FrameRecord(ScalarEvent(now, 10, "learning_rate", .001)),
          FrameRecord(ScalarEvent(now, 10, "examples_per_second", 3000)))));
}

TEST_F(TrainingJournalTest, EventFilesCanBeLeftOut) {
  const auto journal =
      *TrainingJournal::Open({.checkpoint_directory = directory_,
                              .run_id = "a",
                              .has_event_files = false});
  ASSERT_OK(journal->Add(At(10), {}));
  EXPECT_FALSE(IsDirectory(directory_ + "/tensorboard"));
}

// The caller may be the training itself.
TEST_F(TrainingJournalTest, AStoreThatIsAwayIsAskedEverMoreSeldom) {
  MemoryFiles store;
  auto opened = TrainingJournal::Open({.checkpoint_directory = "s3://b/run",
                                       .run_id = "a",
                                       .has_event_files = true});
  ASSERT_OK(opened);
  int requests = 0;
  store.OnRequest([&](const MemoryFiles::Request&) {
    ++requests;
    return MemoryFiles::Fate::kRefused;
  });
  std::string lines;
  absl::Time now = absl::UnixEpoch();
  for (int step = 1; step <= 100; ++step) {
    EXPECT_OK((*opened)->Add(At(step), now += absl::Seconds(1)));
    absl::StrAppend(&lines, ToJsonLine(At(step), "a"), "\n");
  }
  EXPECT_LE(requests, 4);
  EXPECT_GE(requests, 3);
  store.OnRequest();
  for (int step = 101; step <= 200; ++step) {
    EXPECT_OK((*opened)->Add(At(step), now += absl::Seconds(1)));
    absl::StrAppend(&lines, ToJsonLine(At(step), "a"), "\n");
  }
  opened->reset();
  EXPECT_THAT(ReadFile("s3://b/run/training.jsonl", 1 << 20),
              IsOkAndHolds(lines));
}

TEST_F(TrainingJournalTest, AnOwnerThatHasLostAStoreLeavesTheNextOnesLines) {
  MemoryFiles store;
  bool is_lost = false;
  const auto open = [&] {
    return TrainingJournal::Open(
        {.checkpoint_directory = "s3://b/run",
         .run_id = "a",
         .has_event_files = false,
         .check_owner = [&] {
           return is_lost ? absl::FailedPreconditionError("lost")
                          : absl::OkStatus();
         }});
  };
  auto journal = open();
  ASSERT_OK(journal);
  EXPECT_OK((*journal)->Add(At(10), absl::UnixEpoch()));
  is_lost = true;
  const std::string next = "{\"of\":\"the next owner\"}\n";
  store.Put("s3://b/run/training.jsonl", next);
  EXPECT_OK((*journal)->Add(At(20), absl::UnixEpoch() + absl::Minutes(1)));
  journal->reset();
  EXPECT_THAT(open().status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(ReadFile("s3://b/run/training.jsonl", 1000), IsOkAndHolds(next));
}

}  // namespace
}  // namespace parasol
