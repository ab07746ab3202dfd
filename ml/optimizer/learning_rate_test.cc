#include "ml/optimizer/learning_rate.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::UnorderedElementsAreArray;

job::LearningRateSchedule Schedule(const std::string& textproto) {
  job::LearningRateSchedule schedule;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString(textproto, &schedule));
  return schedule;
}

// The rates after `steps` updates are `want`, but for a double's rounding.
void ExpectRates(double initial, const std::string& textproto,
                 const std::vector<int64_t>& steps,
                 const std::vector<double>& want) {
  ASSERT_OK_AND_ASSIGN(const LearningRate rate,
                       LearningRate::Create(initial, Schedule(textproto)));
  std::vector<double> got;
  for (const int64_t step : steps) got.push_back(rate.At(step));
  EXPECT_THAT(got, Pointwise(DoubleNear(1e-15), want)) << textproto;
}

TEST(ScheduleKindsTest, EveryKindOfAJobsScheduleIsInTheListOnce) {
  const auto& kinds =
      *job::LearningRateSchedule::descriptor()->FindOneofByName("kind");
  std::vector<int> fields;
  for (int i = 0; i < kinds.field_count(); ++i) {
    fields.push_back(kinds.field(i)->number());
  }
  std::vector<int> listed;
  for (const ScheduleKind* const kind : ScheduleKinds()) {
    listed.push_back(kind->field);
  }
  EXPECT_THAT(listed, UnorderedElementsAreArray(fields));
}

TEST(LearningRateTest, IsConstantWithoutAKind) {
  ExpectRates(.25, "", {0, 1, int64_t{1} << 53}, {.25, .25, .25});
}

TEST(LearningRateTest, WarmsUpLinearlyToAConstantRate) {
  ExpectRates(.2, "warmup { steps: 4 }", {0, 1, 2, 3, 4, 5, 1000},
              {0, .05, .1, .15, .2, .2, .2});
  ExpectRates(.2, "warmup { steps: 4 start: .1 }", {0, 1, 2, 4, 5},
              {.1, .125, .15, .2, .2});
  // A start above the rate cools down.
  ExpectRates(.2, "warmup { steps: 2 start: .4 }", {0, 1, 2}, {.4, .3, .2});
}

TEST(LearningRateTest, RatesWithAWarmUpAreThoseOfPyTorchAndKeras) {
  std::ifstream file("ml/optimizer/testdata/schedule_cases.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto golden = nlohmann::json::parse(line);
    const std::string text = golden["schedule"];
    SCOPED_TRACE(text);
    ASSERT_OK_AND_ASSIGN(const LearningRate rate,
                         LearningRate::Create(golden["rate"], Schedule(text)));
    const auto want = golden["rates"].get<std::vector<double>>();
    for (size_t step = 0; step < want.size(); ++step) {
      EXPECT_NEAR(rate.At(step), want[step], 1e-14) << step;
    }
  }
  EXPECT_EQ(cases, 24);
}

// The schedule does not wait for the warm-up's end.
TEST(LearningRateTest, WarmsUpToTheRateThatTheScheduleHasAtEachStep) {
  const std::string schedule =
      "inverse_time_decay { decay_steps: 1 decay_rate: 1 }";
  ExpectRates(1, schedule, {0, 1, 2, 3, 4, 5},
              {1, 1. / 2, 1. / 3, 1. / 4, 1. / 5, 1. / 6});
  ExpectRates(1, schedule + " warmup { steps: 4 }", {0, 1, 2, 3, 4, 5},
              {0, 1. / 2 * .25, 1. / 3 * .5, 1. / 4 * .75, 1. / 5, 1. / 6});
  ExpectRates(1, schedule + " warmup { steps: 2 start: .1 }", {0, 1, 2},
              {.1, .1 + (1. / 2 - .1) * .5, 1. / 3});
}

TEST(LearningRateTest, AWarmUpOutOfItsRangeIsNamed) {
  const auto expect_fault = [](const std::string& warmup,
                               const std::string& fault) {
    const absl::Status status = CheckLearningRateSchedule(Schedule(warmup));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << warmup;
    EXPECT_THAT(status.message(), HasSubstr(fault));
  };
  expect_fault("warmup {}", "warmup.steps is 0; it must be at least 1");
  expect_fault("warmup { steps: -3 }", "warmup.steps is -3");
  expect_fault("warmup { steps: 3 start: -1 }", "warmup.start is -1");
  expect_fault("warmup { steps: 3 start: nan }", "warmup.start is nan");
  expect_fault("warmup { steps: 3 start: inf }", "warmup.start is inf");
}

TEST(LearningRateTest, ExponentialDecaysByARateEveryDecaySteps) {
  ExpectRates(
      .05, "exponential_decay { decay_steps: 10 decay_rate: .96 }",
      {0, 5, 10, 25},
      {.05, .05 * std::sqrt(.96), .05 * .96, .05 * .96 * .96 * std::sqrt(.96)});
}

TEST(LearningRateTest, ExponentialStaircaseWaitsForWholeDecaySteps) {
  ExpectRates(
      .05,
      "exponential_decay { decay_steps: 10 decay_rate: .96 staircase: true }",
      {5, 9, 10, 19, 20}, {.05, .05, .048, .048, .05 * .96 * .96});
}

TEST(LearningRateTest, PiecewiseConstantKeepsARateUpToAndWithItsBoundary) {
  ExpectRates(1,
              "piecewise_constant_decay { boundary: [100, 110, 120] "
              "value: [.1, .01, .001] }",
              {0, 100, 101, 110, 111, 120, 121, 1000000},
              {1, 1, .1, .1, .01, .01, .001, .001});
}

TEST(LearningRateTest, PolynomialStaysAtItsEnd) {
  const std::string spec =
      "polynomial_decay { decay_steps: 10 end_learning_rate: .001 }";
  ExpectRates(.05, spec, {0, 5, 10, 15, 1000},
              {.05, (.05 + .001) / 2, .001, .001, .001});
}

TEST(LearningRateTest, PolynomialCycleGoesOnToTheNextMultipleOfDecaySteps) {
  ExpectRates(
      .05,
      "polynomial_decay { decay_steps: 10 end_learning_rate: .001 cycle: true}",
      {0, 5, 10, 15, 20, 25},
      {.05, .0255, .001, (.05 - .001) * .25 + .001, .001,
       (.05 - .001) * (1 - 25. / 30) + .001});
}

TEST(LearningRateTest, PolynomialTakesItsPower) {
  ExpectRates(.05,
              "polynomial_decay { decay_steps: 10 end_learning_rate: .001 "
              "power: .5 }",
              {5}, {.049 * std::sqrt(.5) + .001});
}

TEST(LearningRateTest, PolynomialIsLinearToATenThousandthUnlessSet) {
  ExpectRates(.05, "polynomial_decay { decay_steps: 10 }", {4, 10},
              {.0499 * .6 + .0001, .0001});
}

TEST(LearningRateTest, InverseTimeHalvesWhenRateTimesProgressIsOne) {
  ExpectRates(.1, "inverse_time_decay { decay_steps: 2 decay_rate: .5 }",
              {0, 3, 4, 12}, {.1, .1 / 1.75, .05, .025});
}

TEST(LearningRateTest, InverseTimeStaircaseWaitsForWholeDecaySteps) {
  ExpectRates(
      .1,
      "inverse_time_decay { decay_steps: 2 decay_rate: .5 staircase: true }",
      {1, 3, 4, 5}, {.1, .1 / 1.5, .05, .05});
}

TEST(LearningRateTest, CosineFallsToZeroAndStays) {
  ExpectRates(.2, "cosine_decay { decay_steps: 1000 }",
              {0, 250, 500, 1000, 1500, 2000},
              {.2, .1 * (1 + std::sqrt(.5)), .1, 0, 0, 0});
}

TEST(LearningRateTest, CosineAlphaIsTheFractionThatStays) {
  ExpectRates(.2, "cosine_decay { decay_steps: 1000 alpha: .1 }",
              {0, 500, 1000, 5000}, {.2, .2 * (.9 * .5 + .1), .02, .02});
}

TEST(LearningRateTest, ANumberOutOfRangeIsNamed) {
  struct Case {
    std::string schedule;
    std::string words;
  };
  const Case cases[] = {
      {"exponential_decay { decay_rate: .5 }",
       "exponential_decay.decay_steps is 0"},
      {"exponential_decay { decay_steps: 1 }",
       "exponential_decay.decay_rate is 0"},
      {"exponential_decay { decay_steps: 1 decay_rate: inf }",
       "exponential_decay.decay_rate is inf"},
      {"piecewise_constant_decay { boundary: 1 value: [1, .1] }",
       "piecewise_constant_decay.value is a list of 2 for 1 boundaries"},
      {"piecewise_constant_decay { boundary: [1, 1] value: [1, 1] }",
       "piecewise_constant_decay.boundary[1] is 1; it must be above 1"},
      {"piecewise_constant_decay { boundary: -1 value: 1 }",
       "piecewise_constant_decay.boundary[0] is -1"},
      {"piecewise_constant_decay { boundary: [1, 2] value: [1, -1] }",
       "piecewise_constant_decay.value[1] is -1"},
      {"polynomial_decay { decay_steps: -3 }",
       "polynomial_decay.decay_steps is -3"},
      {"polynomial_decay { decay_steps: 1 end_learning_rate: -1 }",
       "polynomial_decay.end_learning_rate is -1"},
      {"polynomial_decay { decay_steps: 1 power: nan }",
       "polynomial_decay.power is nan"},
      {"inverse_time_decay { decay_rate: 1 }",
       "inverse_time_decay.decay_steps is 0"},
      {"inverse_time_decay { decay_steps: 1 decay_rate: -1 }",
       "inverse_time_decay.decay_rate is -1"},
      {"cosine_decay {}", "cosine_decay.decay_steps is 0"},
      {"cosine_decay { decay_steps: 1 alpha: 1.5 }",
       "cosine_decay.alpha is 1.5"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.schedule);
    EXPECT_THAT(
        LearningRate::Create(1, Schedule(c.schedule)).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.words)));
  }
}

}  // namespace
}  // namespace parasol
