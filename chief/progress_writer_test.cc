#include "chief/progress_writer.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "cluster/rpc/proto_duration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A job's status that the test sets, and counts the looks at.
class FakeJob {
 public:
  void Set(wire::JobPhase phase, int64_t step, int64_t examples) {
    absl::MutexLock lock(&mu_);
    status_.set_phase(phase);
    if (phase >= wire::TRAINING) {
      *status_.mutable_trained() = ToProto(absl::Milliseconds(20) * step);
    }
    status_.set_global_step(step);
    status_.set_end_step(100);
    status_.set_steps_per_epoch(50);
    status_.set_learning_rate(.1);
    status_.set_loss_examples(examples);
    status_.set_loss_sum(.5 * static_cast<double>(examples));
    looks_ = 0;
  }
  wire::JobStatus Get() {
    absl::MutexLock lock(&mu_);
    ++looks_;
    return status_;
  }
  // Blocks until a look has begun and ended since Set().
  void AwaitLook() {
    absl::MutexLock lock(&mu_);
    const auto has_looked = [this] { return looks_ >= 2; };
    EXPECT_TRUE(
        mu_.AwaitWithTimeout(absl::Condition(&has_looked), absl::Seconds(30)));
  }

 private:
  absl::Mutex mu_;
  wire::JobStatus status_;
  int looks_ = 0;
};

// Returns an empty directory of this name.
std::string NewDirectory(const std::string& name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

// Returns what is in training.jsonl after a writer has looked at `job` once, at
// its end.
absl::StatusOr<std::string> WrittenAtTheEnd(
    FakeJob& job, int64_t first_step,
    std::function<absl::Status()> check_owner = [] {
      return absl::OkStatus();
    }) {
  const std::string directory = NewDirectory("progress_once");
  // Time stands still: but for the last look there is none.
  SimulatedClock clock;
  {
    ProgressWriter writer({.status = [&job] { return job.Get(); },
                           .journal = {.checkpoint_directory = directory,
                                       .run_id = "a",
                                       .first_step = first_step},
                           .check_owner = std::move(check_owner)},
                          clock);
  }
  return ReadFile(directory + "/training.jsonl", 10000);
}

TEST(ProgressWriterTest, ATrainingBetweenTwoLooksHasItsRecord) {
  FakeJob job;
  job.Set(wire::COMPLETE, 100, 800);
  EXPECT_THAT(WrittenAtTheEnd(job, 0),
              IsOkAndHolds(StartsWith(
                  R"({"global_step":100,"epoch":2.0,"loss":0.5,)"
                  R"("learning_rate":0.1,"examples_per_second":400.0,)"
                  R"("seconds":2.0,)")));
}

TEST(ProgressWriterTest, ARecordCountsFromWhereTheRunWasResumed) {
  FakeJob job;
  job.Set(wire::COMPLETE, 100, 800);
  EXPECT_THAT(WrittenAtTheEnd(job, 99),
              IsOkAndHolds(StartsWith(R"({"global_step":100,)")));
  EXPECT_THAT(WrittenAtTheEnd(job, 100), StatusIs(absl::StatusCode::kNotFound))
      << "no step was done";
}

TEST(ProgressWriterTest, AChiefThatIsStoppedLeavesTheRecordOfItsPart) {
  FakeJob job;
  job.Set(wire::TRAINING, 60, 480);
  EXPECT_THAT(WrittenAtTheEnd(job, 0),
              IsOkAndHolds(StartsWith(R"({"global_step":60,)")));
}

TEST(ProgressWriterTest, ADirectoryThatHasAnotherOwnerIsLeftAlone) {
  FakeJob job;
  job.Set(wire::TRAINING, 60, 480);
  const auto lost = [] { return absl::FailedPreconditionError("another's"); };
  EXPECT_THAT(WrittenAtTheEnd(job, 0, lost),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(ProgressWriterTest, AnEndDoesNotWriteToADirectoryThatHasAnotherOwner) {
  for (const wire::JobPhase phase :
       {wire::FINISHING, wire::COMPLETE, wire::FAILED}) {
    SCOPED_TRACE(wire::JobPhase_Name(phase));
    FakeJob job;
    job.Set(phase, 60, 480);
    const auto lost = [] { return absl::FailedPreconditionError("another's"); };
    EXPECT_THAT(WrittenAtTheEnd(job, 0, lost),
                StatusIs(absl::StatusCode::kNotFound));
  }
}

TEST(ProgressWriterTest, TheTrainingIsWrittenDownToItsEnd) {
  const std::string directory = testing::TempDir() + "/progress_writer";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  FakeJob job;
  job.Set(wire::LOADING, 0, 0);
  {
    ProgressWriter writer(
        {.status = [&job] { return job.Get(); },
         .journal = {.checkpoint_directory = directory, .run_id = "a"}},
        Clock::Real());
    job.AwaitLook();
    job.Set(wire::TRAINING, 0, 0);
    job.AwaitLook();
    job.Set(wire::TRAINING, 60, 480);
    job.AwaitLook();
    job.Set(wire::COMPLETE, 100, 800);
  }
  const auto lines = ReadFile(directory + "/training.jsonl", 10000);
  ASSERT_OK(lines);
  EXPECT_THAT(*lines,
              HasSubstr(R"({"global_step":100,"epoch":2.0,"loss":0.5,)"));
  EXPECT_TRUE(IsDirectory(directory + "/tensorboard/train"));
}

TEST(ProgressWriterTest, TheLastRecordHasWhatWorkersSayBehindTheEnd) {
  const std::string directory = testing::TempDir() + "/progress_late";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  FakeJob job;
  job.Set(wire::TRAINING, 0, 0);
  {
    ProgressWriter writer(
        {.status = [&job] { return job.Get(); },
         .journal = {.checkpoint_directory = directory, .run_id = "a"}},
        Clock::Real());
    job.AwaitLook();
    // Heartbeats come later than the last step.
    job.Set(wire::COMPLETE, 100, 0);
    job.AwaitLook();
    job.Set(wire::COMPLETE, 100, 800);
  }
  EXPECT_THAT(ReadFile(directory + "/training.jsonl", 10000),
              IsOkAndHolds(
                  StartsWith(R"({"global_step":100,"epoch":2.0,"loss":0.5,)")));
}

TEST(ProgressWriterTest, AJobThatWasCompleteLeavesNothing) {
  const std::string directory = testing::TempDir() + "/progress_complete";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  wire::JobStatus complete;
  complete.set_phase(wire::COMPLETE);
  complete.set_global_step(100);
  complete.set_was_complete(true);
  {
    ProgressWriter writer(
        {.status = [&complete] { return complete; },
         .journal = {.checkpoint_directory = directory, .run_id = "a"}},
        Clock::Real());
  }
  EXPECT_THAT(ReadFile(directory + "/training.jsonl", 10000),
              StatusIs(absl::StatusCode::kNotFound));
}

// A job of 20 steps that has ended: parts of 4 steps, of epochs of 10.
wire::JobStatus JobOfParts() {
  wire::JobStatus status;
  status.set_phase(wire::COMPLETE);
  status.set_global_step(20);
  status.set_end_step(20);
  status.set_steps_per_epoch(10);
  *status.mutable_trained() = ToProto(absl::Milliseconds(200));
  for (const int64_t step : {4, 8, 10, 12, 16, 20}) {
    wire::EpochEnd* end = status.add_epoch_end();
    end->set_step(step);
    *end->mutable_trained() = ToProto(absl::Milliseconds(10) * step);
    end->set_loss_examples(8 * step);
    end->set_loss_sum(4 * static_cast<double>(step));
    end->add_output_loss_sum(2 * static_cast<double>(step));
    end->set_learning_rate(1. / static_cast<double>(step));
    end->set_is_complete(step < 12);
  }
  return status;
}

TEST(ProgressWriterTest, EachPartOfAJobThatIsShortHasItsPoint) {
  const wire::JobStatus status = JobOfParts();
  const std::string directory = NewDirectory("progress_parts");
  job::SummaryPolicy summary;
  summary.set_every_steps(4);
  testing::internal::CaptureStderr();
  SimulatedClock clock;
  {
    ProgressWriter writer({.status = [&status] { return status; },
                           .journal = {.checkpoint_directory = directory,
                                       .run_id = "a",
                                       .outputs = {"ctr"}},
                           .summary = summary},
                          clock);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Epoch 1/2: loss 0.5000"));
  EXPECT_THAT(log, HasSubstr("Epoch 2/2: loss 0.5000"));
  ASSERT_OK_AND_ASSIGN(const std::string lines,
                       ReadFile(directory + "/training.jsonl", 10000));
  std::vector<int64_t> steps;
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    steps.push_back(nlohmann::json::parse(line)["global_step"]);
  }
  EXPECT_THAT(steps, testing::ElementsAre(4, 8, 10, 12, 16, 20));
  EXPECT_THAT(lines, HasSubstr(R"({"global_step":8,"epoch":0.8,"loss":0.5,)"
                               R"("ctr/loss":0.25,"learning_rate":0.125,)"
                               R"("examples_per_second":800.0,)"
                               R"("seconds":0.08,"run_id":"a"})"));
}

TEST(ProgressWriterTest, APartThatIsNotCompleteIsAwaited) {
  wire::JobStatus status = JobOfParts();
  status.set_phase(wire::TRAINING);
  const std::string directory = NewDirectory("progress_open");
  job::SummaryPolicy summary;
  summary.set_every_steps(4);
  summary.set_every_seconds(.01);
  absl::Mutex mu;
  int looks = 0;
  {
    ProgressWriter writer(
        {.status =
             [&] {
               absl::MutexLock lock(&mu);
               ++looks;
               return status;
             },
         .journal = {.checkpoint_directory = directory, .run_id = "a"},
         .summary = summary},
        Clock::Real());
    absl::MutexLock lock(&mu);
    const auto has_looked = [&looks] { return looks >= 2; };
    ASSERT_TRUE(
        mu.AwaitWithTimeout(absl::Condition(&has_looked), absl::Seconds(30)));
    ASSERT_OK_AND_ASSIGN(const std::string lines,
                         ReadFile(directory + "/training.jsonl", 10000));
    EXPECT_THAT(lines, HasSubstr(R"({"global_step":10,)"));
    EXPECT_THAT(lines, testing::Not(HasSubstr(R"({"global_step":12,)")));
    EXPECT_THAT(lines, testing::Not(HasSubstr(R"({"global_step":20,)")));
  }
}

TEST(ProgressWriterTest, EachEpochHasItsLossAlsoBetweenTwoLooks) {
  wire::JobStatus status;
  status.set_phase(wire::COMPLETE);
  status.set_global_step(20);
  status.set_end_step(20);
  status.set_steps_per_epoch(10);
  *status.mutable_trained() = ToProto(absl::Milliseconds(300));
  double loss_sum = 0;
  for (const double loss : {2., .5}) {
    wire::EpochEnd* end = status.add_epoch_end();
    end->set_step(10 * status.epoch_end_size());
    *end->mutable_trained() =
        ToProto(absl::Milliseconds(100) * status.epoch_end_size());
    end->set_loss_examples(100 * status.epoch_end_size());
    end->set_loss_sum(loss_sum += 100 * loss);
  }
  testing::internal::CaptureStderr();
  SimulatedClock clock;
  {
    ProgressWriter writer(
        {.status = [&status] { return status; },
         .journal = {.checkpoint_directory = NewDirectory("progress_epochs"),
                     .run_id = "a"}},
        clock);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("Epoch 1/2: loss 2.0000, 0.1 s, 1000 examples/s"));
  EXPECT_THAT(log, HasSubstr("Epoch 2/2: loss 0.5000, 0.1 s, 1000 examples/s"));
}

}  // namespace
}  // namespace parasol
