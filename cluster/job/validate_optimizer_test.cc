#include "cluster/job/validate_optimizer.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/job/defaults.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/model/graph.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> FaultsOf(const std::string& text) {
  job::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer));
  FillDefaults(optimizer);
  const Faults faults = ValidateOptimizer(optimizer);
  std::vector<std::string> messages;
  for (const absl::Status& fault : faults.all()) {
    messages.emplace_back(fault.message());
  }
  return messages;
}

TEST(ValidateOptimizerTest, EveryNumberAtFaultIsNamedOnce) {
  EXPECT_THAT(FaultsOf("adam {}"), IsEmpty());
  EXPECT_THAT(
      FaultsOf("adam { learning_rate: -1 beta_1: 1.2 beta_2: 0.9 epsilon: -1 } "
               "clipnorm: -2 ema { decay: 2 }"),
      ElementsAre(HasSubstr("optimizer: adam.learning_rate is -1"),
                  HasSubstr("optimizer: adam.beta_1 is 1.2"),
                  HasSubstr("optimizer: adam.epsilon is -1"),
                  HasSubstr("optimizer: ema.decay is 2"),
                  HasSubstr("optimizer: clipnorm is -2")));
}

TEST(ValidateOptimizerTest, SchedulesAndWarmUpsAreNamedOnce) {
  EXPECT_THAT(
      FaultsOf("sgd { momentum: 2 } learning_rate_schedule { warmup { steps: 0 "
               "start: -1 } polynomial_decay { decay_steps: -4 power: -1 } }"),
      ElementsAre(
          HasSubstr("optimizer.learning_rate_schedule: warmup.steps is 0"),
          HasSubstr("optimizer: sgd.momentum is 2")));
}

std::vector<std::string> FaultsOfLocalSteps(const std::string& text) {
  job::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &job));
  FillDefaults(job);
  const Faults faults = ValidateLocalSteps(job, /*graph=*/nullptr);
  std::vector<std::string> messages;
  for (const absl::Status& fault : faults.all()) {
    messages.emplace_back(fault.message());
  }
  return messages;
}

TEST(ValidateLocalStepsTest, BothOptimizersAreNamedAsInTheUsersFile) {
  EXPECT_THAT(FaultsOfLocalSteps(
                  "optimizer { adam {} clipnorm: 1 } parameter_server { "
                  "local_steps { steps: 4 outer { sgd { momentum: .9 } } } }"),
              IsEmpty());
  EXPECT_THAT(
      FaultsOfLocalSteps(
          "optimizer { adam { beta_1: 2 } ema {} } parameter_server { "
          "local_steps { outer { sgd { momentum: 3 } clipnorm: 1 } } }"),
      ElementsAre(
          HasSubstr("parameter_server.local_steps.steps"),
          HasSubstr("optimizer: adam.beta_1 is 2"),
          HasSubstr("parameter_server.local_steps.outer: sgd.momentum is 3"),
          HasSubstr("parameter_server.local_steps.outer: differences"),
          HasSubstr("optimizer.ema: local steps are a worker's own")));
}

TEST(ValidateLocalStepsTest, ARateOfTheGlobalBatchIsNamedWhereItStands) {
  constexpr char kRate[] =
      "learning_rate_by_global_batch { batch: 5 rate: 0.1 } ";
  EXPECT_THAT(
      FaultsOfLocalSteps(absl::StrCat(
          "optimizer { adam {} ", kRate,
          "} parameter_server { local_steps { steps: 4 outer { sgd {} ", kRate,
          "} } }")),
      ElementsAre(HasSubstr("optimizer.learning_rate_by_global_batch: has no"),
                  HasSubstr("parameter_server.local_steps.outer.learning_rate_"
                            "by_global_batch: has no")));
}

TEST(ValidateLocalStepsTest, AnOuterOptimizerIsAskedFor) {
  EXPECT_THAT(FaultsOfLocalSteps("optimizer { adam {} } parameter_server { "
                                 "local_steps { steps: 4 } }"),
              ElementsAre(HasSubstr("parameter_server.local_steps.outer")));
  EXPECT_THAT(FaultsOfLocalSteps(
                  "optimizer { adam {} } parameter_server { local_steps { "
                  "steps: 4 outer { sgd {} } inner { sgd {} } } }"),
              ElementsAre(HasSubstr("local_steps.inner: Parasol sets it")));
}

TEST(ValidateLocalStepsTest, ABatchSizeIsParasolsOwn) {
  const std::string outer =
      "optimizer { adam {} } parameter_server { local_steps { steps: 4 "
      "batch_size: 5 outer { sgd {} } } }";
  EXPECT_THAT(FaultsOfLocalSteps(outer + "train { batch_size: 5 }"),
              ElementsAre(HasSubstr("local_steps.batch_size: 5 examples in "
                                    "each of 4 steps are not the 5")));
  EXPECT_THAT(FaultsOfLocalSteps(outer + "train { batch_size: 20 }"),
              IsEmpty());
}

TEST(ValidateLocalStepsTest, FragmentsHaveStepsAndVariables) {
  const auto faults = [](const std::string& settings) {
    return FaultsOfLocalSteps(
        absl::StrCat("optimizer { adam {} } parameter_server { local_steps { "
                     "steps: 10 outer { sgd {} } ",
                     settings, " } }"));
  };
  EXPECT_THAT(faults("fragments: 10"), IsEmpty());
  EXPECT_THAT(faults("fragments: 3 overlap_steps: 2"), IsEmpty());
  EXPECT_THAT(faults("overlap_steps: 9"), IsEmpty());
  EXPECT_THAT(faults("fragments: 11"),
              ElementsAre(HasSubstr("local_steps.fragments")));
  EXPECT_THAT(faults("fragments: 0"),
              ElementsAre(HasSubstr("local_steps.fragments")));
  EXPECT_THAT(faults("fragments: 3 overlap_steps: 3"),
              ElementsAre(HasSubstr("local_steps.overlap_steps: 3 of the 3 "
                                    "local steps between two exchanges")));
  EXPECT_THAT(faults("overlap_steps: -1"),
              ElementsAre(HasSubstr("local_steps.overlap_steps")));
}

TEST(ValidateLocalStepsTest, FragmentsHaveNoBound) {
  const std::string job =
      "optimizer { adam {} } parameter_server { bounded_staleness { bound: 3 } "
      "local_steps { steps: 10 outer { sgd {} } ";
  EXPECT_THAT(FaultsOfLocalSteps(job + "fragments: 2 } }"),
              ElementsAre(HasSubstr("parameter_server.bounded_staleness")));
  EXPECT_THAT(FaultsOfLocalSteps(job + "} }"), IsEmpty());
}

TEST(ValidateLocalStepsTest, FragmentsAreGroupsOfWholeVariables) {
  job::Job job;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model { input_shape: 2 layer { dense { units: 2 } } "
      "layer { dense { units: 1 } } loss { mean_squared_error {} } } "
      "optimizer { adam {} } parameter_server { "
      "local_steps { steps: 10 outer { sgd {} } fragments: 5 } }",
      &job));
  FillDefaults(job);
  ASSERT_OK_AND_ASSIGN(const Graph graph, ResolveGraph(job.model()));
  const Faults faults = ValidateLocalSteps(job, &graph);
  ASSERT_EQ(faults.all().size(), 1);
  EXPECT_THAT(faults.first(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("5 groups of whole variables, but the model "
                                 "has only 4")));
}

TEST(ValidateLocalStepsTest, WhatTheyCantTakeIsNamed) {
  const std::string steps =
      "optimizer { adam {} } parameter_server { local_steps { steps: 4 outer { "
      "sgd {} } } } ";
  EXPECT_THAT(
      FaultsOfLocalSteps(steps + "model { sparse_table { name: 't' } }"),
      ElementsAre(HasSubstr("the sparse table \"t\"")));
  EXPECT_THAT(
      FaultsOfLocalSteps(steps + "model { layer { name: 'd' dense { units: 2 } "
                                 "learning_rate_multiplier: 2 } }"),
      ElementsAre(HasSubstr("layer \"d\" has a learning_rate_multiplier")));
  EXPECT_THAT(
      FaultsOfLocalSteps(steps + "strategy { multi_worker_mirrored { "
                                 "communication: NCCL } }"),
      ElementsAre(HasSubstr("multi_worker_mirrored.communication: NCCL")));
}

TEST(ValidateOptimizerTest, WithoutAnyOneIsAskedFor) {
  EXPECT_THAT(FaultsOf(""), ElementsAre(HasSubstr("none is chosen")));
}

}  // namespace
}  // namespace parasol
