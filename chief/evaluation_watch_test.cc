#include "chief/evaluation_watch.h"

#include <cmath>
#include <filesystem>
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

Evaluation At(int64_t step, double loss = 1) {
  return {.global_step = step, .loss = loss, .run_id = "run"};
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

  EvaluationWatch::Options Watching(std::vector<Evaluation> dropped = {}) {
    return {.checkpoint_directory = directory_,
            .run_id = "run",
            .dropped = std::move(dropped),
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

TEST_F(EvaluationWatchTest, EvaluationsThatWereDroppedDoNotCountUntilAnew) {
  ASSERT_OK(AppendEvaluation(directory_, At(10)));
  ASSERT_OK(AppendEvaluation(directory_, At(20)));
  std::vector<Evaluation> all = *ReadEvaluations(directory_, "run");
  EvaluationWatch watch(Watching(DropLaterThan(10, all)), Clock::Real());
  heard_.Await({10});
  ASSERT_OK(AppendEvaluation(directory_, At(20, .5)));
  heard_.Await({10, 20});
}

TEST_F(EvaluationWatchTest, ADroppedOneMayHaveALossThatIsNoNumber) {
  ASSERT_OK(AppendEvaluation(directory_, At(10)));
  ASSERT_OK(AppendEvaluation(directory_, At(20, std::nan(""))));
  std::vector<Evaluation> all = *ReadEvaluations(directory_, "run");
  EvaluationWatch watch(Watching(DropLaterThan(10, all)), Clock::Real());
  heard_.Await({10});
}

}  // namespace
}  // namespace parasol
