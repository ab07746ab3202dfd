#include "cluster/checkpoint/run_decisions.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

job::Job MakeJob(double rate = .5) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(end { early_stopping { metric: "loss" mode: MIN patience: 3 } }
           checkpoint { keep_best { metric: "loss" mode: MIN } }
           optimizer {
             sgd {}
             reduce_on_plateau {
               metric: "loss"
               mode: MIN
               factor: .1
               patience: 1
             }
           })pb",
      &job));
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(rate);
  return job;
}

std::vector<Evaluation> Losses(const std::vector<double>& losses) {
  std::vector<Evaluation> evaluations;
  for (const double loss : losses) {
    Evaluation& evaluation = evaluations.emplace_back();
    evaluation.global_step = 10 * static_cast<int64_t>(evaluations.size());
    evaluation.loss = loss;
  }
  return evaluations;
}

TEST(RunDecisionsTest, EachChangeIsToldOnce) {
  RunDecisions decisions(MakeJob(), std::nullopt, {});
  EXPECT_THAT(decisions.Update(Losses({4})),
              ElementsAre("the best checkpoint by loss is that of step 10"));
  EXPECT_THAT(decisions.Update(Losses({4})), IsEmpty());
  EXPECT_THAT(
      decisions.Update(Losses({4, 5})),
      ElementsAre("loss has not improved: the learning rate is reduced from "
                  "0.5 to 0.05"));
  EXPECT_EQ(decisions.stop(), std::nullopt);
  EXPECT_THAT(decisions.Update(Losses({4, 5, 5, 5})),
              ElementsAre(HasSubstr("early stopping: loss was 5 at step 40"),
                          HasSubstr("from 0.05 to 0.0005")));
}

TEST(RunDecisionsTest, WhatWasDecidedStaysWithoutItsEvaluations) {
  RunDecisions decisions(MakeJob(), std::nullopt, Losses({4, 5, 5, 5}));
  EXPECT_TRUE(decisions.stop());
  const auto rate = decisions.learning_rate();
  EXPECT_THAT(decisions.Update({}), IsEmpty());
  EXPECT_TRUE(decisions.stop());
  EXPECT_EQ(decisions.learning_rate(), rate);
  EXPECT_THAT(decisions.best_first(), IsEmpty());
}

TEST(RunDecisionsTest, TheRateOfTheCheckpointGoesOn) {
  durable::CheckpointManifest resumed;
  *resumed.mutable_job() = MakeJob();
  resumed.set_reduced_learning_rate(.005);
  EXPECT_EQ(RunDecisions(MakeJob(), resumed, {}).learning_rate(), .005);
  EXPECT_DOUBLE_EQ(
      *RunDecisions(MakeJob(), resumed, Losses({4, 4, 4, 4})).learning_rate(),
      .0005);
  // The job has another rate now, or reduces none.
  EXPECT_EQ(RunDecisions(MakeJob(.4), resumed, {}).learning_rate(),
            std::nullopt);
  job::Job constant = MakeJob();
  constant.mutable_optimizer()->clear_reduce_on_plateau();
  EXPECT_EQ(RunDecisions(constant, resumed, {}).learning_rate(), std::nullopt);
}

}  // namespace
}  // namespace parasol
