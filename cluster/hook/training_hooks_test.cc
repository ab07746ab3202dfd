#include "cluster/hook/training_hooks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down what it is told.
class Listener : public TrainingHook {
 public:
  explicit Listener(std::vector<std::string>& told) : told_(told) {}

  void OnStep(const Step& step) override {
    told_.push_back(absl::StrCat("step ", step.number, " of ", step.examples,
                                 " with ", step.loss));
  }
  void OnEpoch(const Epoch& epoch) override {
    told_.push_back(absl::StrCat("epoch ", epoch.number, " at ", epoch.step,
                                 " with ", epoch.loss.value_or(-1)));
  }
  void OnCheckpoint(const Checkpoint& checkpoint) override {
    told_.push_back(
        absl::StrCat("checkpoint ", checkpoint.step, " in ", checkpoint.path));
  }
  void OnEvaluation(const Evaluation& evaluation) override {
    told_.push_back(absl::StrCat("evaluation of ", evaluation.step, ": ",
                                 evaluation.metrics.front().first, " ",
                                 evaluation.metrics.front().second,
                                 evaluation.is_last ? ", the last" : ""));
  }

 private:
  std::vector<std::string>& told_;
};

class TrainingHooksTest : public testing::Test {
 protected:
  TrainingHooksTest()
      : hooks_(std::make_unique<TrainingHooks>(OneListener())) {}

  std::vector<std::unique_ptr<TrainingHook>> OneListener() {
    std::vector<std::unique_ptr<TrainingHook>> hooks;
    hooks.push_back(std::make_unique<Listener>(told_));
    return hooks;
  }

  // A status of a job whose epochs have ten steps and as many examples.
  static wire::JobStatus At(int64_t step, double loss_sum) {
    wire::JobStatus status;
    status.set_global_step(step);
    status.set_steps_per_epoch(10);
    status.set_loss_sum(loss_sum);
    status.set_loss_examples(step);
    return status;
  }
  static void AddEnd(int64_t step, double loss_sum, bool is_complete,
                     wire::JobStatus& status) {
    wire::EpochEnd& end = *status.add_epoch_end();
    end.set_step(step);
    end.set_loss_sum(loss_sum);
    end.set_loss_examples(step);
    end.set_is_complete(is_complete);
  }

  std::vector<std::string> told_;
  std::unique_ptr<TrainingHooks> hooks_;
};

TEST_F(TrainingHooksTest, StepsAndEvaluationsAreTold) {
  hooks_->OnStep({.number = 3, .examples = 8, .loss = .5});
  Evaluation evaluation;
  evaluation.global_step = 7;
  evaluation.metrics = {{"accuracy", .25}};
  evaluation.final = true;
  hooks_->OnEvaluation(evaluation);
  EXPECT_THAT(told_, ElementsAre("step 3 of 8 with 0.5",
                                 "evaluation of 7: accuracy 0.25, the last"));
}

TEST_F(TrainingHooksTest, AnEpochIsToldWhenAllOfItIsReported) {
  hooks_->Look(At(0, 0), /*is_exact=*/false);
  wire::JobStatus status = At(12, 15);
  AddEnd(10, 9, /*is_complete=*/false, status);
  hooks_->Look(status, false);
  EXPECT_THAT(told_, IsEmpty());
  status = At(24, 28);
  AddEnd(5, 6, true, status);  // of a curve alone
  AddEnd(10, 10, true, status);
  AddEnd(20, 25, true, status);
  hooks_->Look(status, false);
  hooks_->Look(status, false);
  EXPECT_THAT(told_,
              ElementsAre("epoch 1 at 10 with 1", "epoch 2 at 20 with 1.5"));
}

// Its sums begin anew, where it goes on.
TEST_F(TrainingHooksTest, SumsOfTwoChiefsAreNotCompared) {
  for (const int64_t seen_from : {int64_t{15}, int64_t{23}}) {
    SCOPED_TRACE(seen_from);
    told_.clear();
    hooks_ = std::make_unique<TrainingHooks>(OneListener());
    hooks_->Look(At(0, 0), /*is_exact=*/false);
    wire::JobStatus status = At(21, 0);
    AddEnd(10, 10, /*is_complete=*/true, status);
    AddEnd(20, 25, true, status);
    hooks_->Look(status, false);
    told_.clear();
    status = At(41, 0);
    status.set_seen_from(seen_from);
    for (const int64_t step : {20, 30, 40}) {
      AddEnd(step, 3 * (step - seen_from), true, status);
      wire::EpochEnd& end = *status.mutable_epoch_end()->rbegin();
      end.set_seen_from(std::min(seen_from, step));
      end.set_loss_examples(std::max<int64_t>(0, step - seen_from));
    }
    hooks_->Look(status, false);
    EXPECT_THAT(told_,
                ElementsAre("epoch 3 at 30 with -1", "epoch 4 at 40 with 3"));
  }
}

// Before it trains, a chief that goes on does not say yet from where.
TEST_F(TrainingHooksTest, TheFirstEpochOfAResumedJobHasItsLoss) {
  wire::JobStatus status = At(500, 0);
  status.set_loss_examples(0);
  hooks_->Look(status, /*is_exact=*/false);
  // Some steps are done, and none reported, when a second one looks.
  TrainingHooks late(OneListener());
  status.set_global_step(503);
  status.set_seen_from(500);
  status.mutable_trained();
  late.Look(status, false);
  status = At(512, 0);
  AddEnd(510, 30, /*is_complete=*/true, status);
  status.mutable_epoch_end(0)->set_loss_examples(10);
  status.mutable_epoch_end(0)->set_seen_from(500);
  hooks_->Look(status, false);
  late.Look(status, false);
  EXPECT_THAT(told_,
              ElementsAre("epoch 51 at 510 with 3", "epoch 51 at 510 with 3"));
}

TEST_F(TrainingHooksTest, WhatWasThereAtTheBeginningIsNotTold) {
  wire::JobStatus status = At(10, 0);
  status.set_checkpoint("/c/ckpt-000000000010");
  hooks_->Look(status, /*is_exact=*/true);
  status = At(19, 9);
  status.set_checkpoint("/c/ckpt-000000000010");
  hooks_->Look(status, true);
  EXPECT_THAT(told_, IsEmpty());
  status = At(20, 20);
  status.set_checkpoint("/c/ckpt-000000000020");
  hooks_->Look(status, true);
  EXPECT_THAT(told_, ElementsAre("epoch 2 at 20 with 2",
                                 "checkpoint 20 in /c/ckpt-000000000020"));
}

TEST_F(TrainingHooksTest, LinkedHooksAreMadeForEachTask) {
  static int made = 0;
  static const TrainingHookRegistration registration(
      "counting", [](const TrainingHook::Task& task) {
        made += task.index;
        return std::make_unique<TrainingHook>();
      });
  EXPECT_THAT(TrainingHookNames(), ElementsAre("counting"));
  EXPECT_FALSE(TrainingHooks({.role = "worker", .index = 3}).is_empty());
  EXPECT_EQ(made, 3);
}

TEST(TrainingHookDeathTest, AHookThatIsNotMadeIsNamed) {
  EXPECT_DEATH(
      {
        const TrainingHookRegistration registration(
            "nothing", [](const TrainingHook::Task&) { return nullptr; });
        MakeTrainingHooks({.role = "worker"});
      },
      "hook \"nothing\"");
}

}  // namespace
}  // namespace parasol
