#include "chief/evaluation_watch.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// An evaluation of a checkpoint that chief 2 has written.
Evaluation At(int64_t step, int64_t chief_epoch = 2) {
  return {.global_step = step, .run_id = "run", .chief_epoch = chief_epoch};
}

// The checkpoint of a step that chief 1 has written.
durable::CheckpointManifest First(int64_t step) {
  durable::CheckpointManifest manifest;
  manifest.set_global_step(step);
  manifest.set_chief_epoch(1);
  return manifest;
}

// Takes what a watch says.
class Heard {
 public:
  void Take(const std::vector<Evaluation>& evaluations) {
    absl::MutexLock lock(&mu_);
    steps_.clear();
    for (const Evaluation& one : evaluations) steps_.push_back(one.global_step);
    ++times_;
  }
  // Blocks until these are the steps of the newest call.
  void Await(const std::vector<int64_t>& steps) {
    absl::MutexLock lock(&mu_);
    const auto is_heard = [&] { return steps_ == steps; };
    EXPECT_TRUE(
        mu_.AwaitWithTimeout(absl::Condition(&is_heard), absl::Seconds(30)));
  }
  int times() {
    absl::MutexLock lock(&mu_);
    return times_;
  }

 private:
  absl::Mutex mu_;
  std::vector<int64_t> steps_;
  int times_ = 0;
};

class EvaluationWatchTest : public testing::Test {
 protected:
  EvaluationWatchTest()
      : directory_(
            testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }

  // Returns what chief 2 watches, which goes on from `resumed`.
  EvaluationWatch::Options Watching(
      const std::optional<durable::CheckpointManifest>& resumed =
          std::nullopt) {
    return {.checkpoint_directory = directory_,
            .run_id = "run",
            .history = RunHistory(resumed, 2),
            .on_change = [this](const std::vector<Evaluation>& evaluations) {
              heard_.Take(evaluations);
            }};
  }

  const std::string directory_;
  Heard heard_;
};

TEST_F(EvaluationWatchTest, TellsAllEvaluationsWhenOneIsAdded) {
  EvaluationWatch watch(Watching(), Clock::Real());
  ASSERT_OK(AppendEvaluation(directory_, At(10)));
  heard_.Await({10});
  ASSERT_OK(AppendEvaluation(directory_, At(20)));
  heard_.Await({10, 20});
}

// The evaluator was still at work on the checkpoint of step 20 when the run
// went back behind it.
TEST_F(EvaluationWatchTest, EvaluationsOfAbandonedCheckpointsNeverCount) {
  ASSERT_OK(AppendEvaluation(directory_, At(10, 1)));
  ASSERT_OK(AppendEvaluation(directory_, At(15, 1)));
  EvaluationWatch watch(Watching(First(10)), Clock::Real());
  heard_.Await({10});
  ASSERT_OK(AppendEvaluation(directory_, At(20, 2)));
  heard_.Await({10, 20});
  // It comes last, and has the step of one that counts.
  ASSERT_OK(AppendEvaluation(directory_, At(20, 1)));
  ASSERT_OK(AppendEvaluation(directory_, At(25, 1)));
  ASSERT_OK(AppendEvaluation(directory_, At(30, 2)));
  heard_.Await({10, 20, 30});
}

}  // namespace
}  // namespace parasol
