#include "chief/kubeflow/trainer_status.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::Le;

const absl::Time kLooked = absl::FromUnixSeconds(1000000000);

wire::JobStatus TrainingStatus() {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(457);
  status.set_end_step(1000);
  status.set_loss(.25);
  status.set_learning_rate(.1);
  status.set_examples_per_second(1200);
  status.mutable_trained()->set_seconds(3);
  return status;
}

nlohmann::json Parsed(const std::string& body) {
  return nlohmann::json::parse(body).at("trainerStatus");
}

TEST(TrainerStatusTest, TheBodyHasProgressTimeLeftAndMetrics) {
  const Evaluation evaluation = {
      .global_step = 400, .metrics = {{"accuracy", .97}}, .loss = .3};
  EXPECT_EQ(TrainerStatusBody(TrainingStatus(), absl::Milliseconds(9500),
                              evaluation, kLooked),
            R"({"trainerStatus":{"progressPercentage":45,)"
            R"("estimatedRemainingSeconds":10,"metrics":[)"
            R"({"name":"global_step","value":"457"},)"
            R"({"name":"loss","value":"0.25"},)"
            R"({"name":"learning_rate","value":"0.1"},)"
            R"({"name":"examples_per_second","value":"1200"},)"
            R"({"name":"eval_global_step","value":"400"},)"
            R"({"name":"eval_loss","value":"0.3"},)"
            R"({"name":"eval_accuracy","value":"0.97"}],)"
            R"("lastUpdatedTime":"2001-09-09T01:46:40Z"}})");
}

TEST(TrainerStatusTest, WhatIsNotKnownOrNotFiniteIsLeftOut) {
  wire::JobStatus status;
  status.set_loss(std::numeric_limits<double>::quiet_NaN());
  const auto body =
      Parsed(TrainerStatusBody(status, std::nullopt, std::nullopt, kLooked));
  EXPECT_EQ(body.dump(), R"({"lastUpdatedTime":"2001-09-09T01:46:40Z",)"
                         R"("metrics":[{"name":"global_step","value":"0"}]})");
}

TEST(TrainerStatusTest, OnlyACompleteJobIsAtAHundredPercent) {
  wire::JobStatus status = TrainingStatus();
  const auto percentage = [&status] {
    return Parsed(
               TrainerStatusBody(status, std::nullopt, std::nullopt, kLooked))
        .at("progressPercentage");
  };
  status.set_global_step(1000);
  status.set_phase(wire::FINISHING);
  EXPECT_EQ(percentage(), 99);
  status.set_phase(wire::COMPLETE);
  EXPECT_EQ(percentage(), 100);
  // A checkpoint of a longer job, and an early end.
  status.set_phase(wire::TRAINING);
  status.set_global_step(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(percentage(), 99);
  status.set_global_step(3);
  status.set_phase(wire::COMPLETE);
  EXPECT_EQ(percentage(), 100);
}

TEST(TrainerStatusTest, TimeLeftFitsTheSchema) {
  const auto left = [](absl::Duration left) {
    return Parsed(
               TrainerStatusBody(TrainingStatus(), left, std::nullopt, kLooked))
        .at("estimatedRemainingSeconds");
  };
  EXPECT_EQ(left(absl::InfiniteDuration()), 2147483647);
  EXPECT_EQ(left(-absl::Seconds(5)), 0);
}

TEST(TrainerStatusTest, NoNameMakesTheBodyLargerThanTheServerTakes) {
  Evaluation evaluation;
  // Six bytes of JSON for each, or no UTF-8.
  for (int i = 0; i < 1000; ++i) {
    evaluation.metrics.emplace_back(
        absl::StrCat(i, std::string(50, i % 2 == 0 ? '\x01' : '\xff')), .5);
  }
  evaluation.metrics.emplace_back(std::string(60, 'x'), .5);
  const std::string body =
      TrainerStatusBody(TrainingStatus(), std::nullopt, evaluation, kLooked);
  EXPECT_THAT(body.size(), Le(kMaxTrainerStatusBytes));
  const auto metrics = Parsed(body).at("metrics");
  EXPECT_GT(metrics.size(), 100u);
  EXPECT_THAT(metrics.size(), Le(kMaxTrainerMetrics));
  for (const auto& metric : metrics) {
    EXPECT_FALSE(metric.at("name").get<std::string>().empty());
  }
}

}  // namespace
}  // namespace parasol
