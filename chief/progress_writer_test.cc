#include "chief/progress_writer.h"

#include <filesystem>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

}  // namespace
}  // namespace parasol
