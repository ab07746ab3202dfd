#include "worker/lone_chief.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "base/metrics.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "cluster/job/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "worker/lone_trainer.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::Optional;

// A job of 20 steps, and a checkpoint after each fifth one.
class LoneChiefTest : public testing::Test {
 protected:
  LoneChiefTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/chief_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ + "/data.csv") << "x,y\n1,2\n2,4\n3,6\n4,8\n";
    job_ = *ParseJob(R"(
      name: "line"
      model {
        input { name: "x" dense { column { name: "x" } } }
        layer { name: "y" dense { units: 1 } }
        loss { mean_squared_error {} }
      }
      train { csv { file: "data.csv" label { column: "y" } } batch_size: 2 }
      optimizer { sgd {} }
      end { steps: 20 }
      checkpoint { every_steps: 5 }
    )",
                     "job");
    job_.mutable_checkpoint()->set_directory(root_ + "/checkpoints");
    FillDefaults(job_);
  }

  // Starts the chief, and carries its orders out until it grants steps.
  void Start() {
    const Graph graph = *ResolveGraph(job_.model());
    trainer_ = *LoneTrainer::Open({.job = job_,
                                   .graph = graph,
                                   .replicas = {.devices = {"cpu"}},
                                   .data_dir = root_},
                                  clock_, metrics_);
    auto chief =
        LoneChief::Start({.job = job_,
                          .variables = graph.variables,
                          .checkpoint_timeout = absl::Minutes(10),
                          .is_stopping = [this] { return is_stopping_; },
                          .on_trouble = [](absl::string_view) {}},
                         *trainer_, clock_);
    ASSERT_OK(chief);
    chief_ = *std::move(chief);
    while (chief_->Status().phase() == wire::LOADING) {
      const auto order = chief_->NextOrder();
      ASSERT_TRUE(order);
      if (const auto* const load = std::get_if<LoadOrder>(&*order)) {
        ASSERT_OK(chief_->CarryOut(*load));
      } else {
        Write(*order);
      }
    }
  }

  void Write(const Order& order) {
    const auto& checkpoint = std::get<CheckpointOrder>(order);
    const absl::Status written = chief_->Write(checkpoint);
    EXPECT_OK(written);
    chief_->Done(checkpoint, written);
  }

  // Takes and completes the steps from `first` on until an order comes first.
  // Returns the number of steps that are done then.
  int64_t TakeSteps(int64_t first) {
    chief_->Complete(first);
    while (chief_->StartStep()) chief_->Complete(++first);
    return first;
  }

  const std::string root_;
  SimulatedClock clock_;
  MetricsRegistry metrics_;
  job::Job job_;
  bool is_stopping_ = false;
  std::unique_ptr<LoneTrainer> trainer_;
  std::unique_ptr<LoneChief> chief_;
};

TEST_F(LoneChiefTest, BatchesHaveTheNumbersOfTheirSteps) {
  Start();
  for (int64_t step = 0; step < 5; ++step) {
    chief_->Complete(step);
    EXPECT_THAT(chief_->StartStep(), Optional(step));
    EXPECT_EQ(chief_->Upcoming().front(), step + 1);
  }
}

TEST_F(LoneChiefTest, NoStepComesBetweenADueCheckpointAndItsOrder) {
  Start();
  ASSERT_EQ(TakeSteps(0), 5);
  EXPECT_EQ(chief_->StartStep(), std::nullopt);
  const auto order = chief_->NextOrder();
  ASSERT_TRUE(order);
  EXPECT_EQ(std::get<CheckpointOrder>(*order).manifest.global_step(), 5);
  Write(*order);
  EXPECT_EQ(TakeSteps(5), 10);
}

TEST_F(LoneChiefTest, StepsGoOnWhileAFailedCheckpointWaits) {
  Start();
  ASSERT_EQ(TakeSteps(0), 5);
  const auto order = std::get<CheckpointOrder>(*chief_->NextOrder());
  chief_->Done(order, absl::ResourceExhaustedError("the disk is full"));
  EXPECT_THAT(chief_->Status().trouble(), testing::HasSubstr("is full"));
  // A second is not over yet.
  EXPECT_EQ(TakeSteps(5), 20);
}

TEST_F(LoneChiefTest, AStopThatHasNothingToKeepEndsAtOnce) {
  Start();
  ASSERT_EQ(TakeSteps(0), 5);
  Write(*chief_->NextOrder());
  is_stopping_ = true;
  EXPECT_EQ(TakeSteps(5), 5);
  EXPECT_EQ(chief_->Outcome(), std::nullopt);
  EXPECT_EQ(chief_->NextOrder(), std::nullopt);
  EXPECT_THAT(chief_->Outcome(),
              Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(LoneChiefTest, AStopKeepsTheStepsSinceTheLastCheckpoint) {
  Start();
  chief_->Complete(0);
  ASSERT_TRUE(chief_->StartStep());
  chief_->Complete(1);
  is_stopping_ = true;
  EXPECT_EQ(chief_->Outcome(), std::nullopt);
  const auto order = chief_->NextOrder();
  ASSERT_TRUE(order);
  EXPECT_EQ(std::get<CheckpointOrder>(*order).manifest.global_step(), 1);
  Write(*order);
  EXPECT_EQ(chief_->NextOrder(), std::nullopt);
  EXPECT_THAT(chief_->Outcome(),
              Optional(StatusIs(absl::StatusCode::kCancelled)));
}

TEST_F(LoneChiefTest, AStopWhoseCheckpointFailsSaysSo) {
  Start();
  chief_->Complete(0);
  ASSERT_TRUE(chief_->StartStep());
  chief_->Complete(1);
  is_stopping_ = true;
  EXPECT_EQ(chief_->Outcome(), std::nullopt);
  const auto order = std::get<CheckpointOrder>(*chief_->NextOrder());
  fs::remove_all(job_.checkpoint().directory());
  std::ofstream(job_.checkpoint().directory()) << "no directory";
  EXPECT_THAT(chief_->Write(order),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr(job_.checkpoint().directory())));
  EXPECT_THAT(chief_->Outcome(),
              Optional(StatusIs(absl::StatusCode::kInvalidArgument)));
}

TEST_F(LoneChiefTest, TheEndIsTheLastCheckpoint) {
  Start();
  int64_t step = 0;
  while (step < 20) {
    step = TakeSteps(step);
    EXPECT_EQ(chief_->Outcome(), std::nullopt);
    Write(*chief_->NextOrder());
  }
  EXPECT_EQ(step, 20);
  EXPECT_THAT(chief_->Outcome(), Optional(IsOk()));
  EXPECT_EQ(chief_->Status().phase(), wire::COMPLETE);
  EXPECT_EQ(chief_->Status().end_step(), 20);
}

}  // namespace
}  // namespace parasol
