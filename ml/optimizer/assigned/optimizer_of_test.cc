#include "ml/optimizer/assigned/optimizer_of.h"

#include <cstdint>
#include <string>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {
namespace {

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

// A schedule of each kind, and what else has rates.
constexpr const char* kSchedules[] = {
    "",
    "exponential_decay { decay_steps: 10 decay_rate: .5 }",
    "piecewise_constant_decay { boundary: [3, 9] value: [.5, .25] }",
    "polynomial_decay { decay_steps: 10 end_learning_rate: .125 power: 2 }",
    "inverse_time_decay { decay_steps: 4 decay_rate: 2 }",
    "cosine_decay { decay_steps: 10 alpha: .125 }",
    "warmup { steps: 6 start: .5 }",
    "cosine_decay { decay_steps: 10 } warmup { steps: 6 start: .5 }",
};

double RateAfter(int64_t updates, const job::Optimizer& spec) {
  return LearningRate::Create(spec.sgd().learning_rate(),
                              spec.learning_rate_schedule())
      ->At(updates);
}

TEST(WithRateTimesTest, MultipliesTheRateOfEveryScheduleAtEveryStep) {
  EXPECT_EQ(std::size(kSchedules), job::LearningRateSchedule::descriptor()
                                           ->FindOneofByName("kind")
                                           ->field_count() +
                                       3);
  for (const std::string schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    const auto spec = Parse<job::Optimizer>(
        "sgd { learning_rate: .75 } learning_rate_schedule { " + schedule +
        " }");
    const job::Optimizer times = WithRateTimes(4, spec);
    for (int64_t updates = 0; updates < 20; ++updates) {
      EXPECT_DOUBLE_EQ(RateAfter(updates, times), 4 * RateAfter(updates, spec));
    }
  }
}

TEST(WithRateTimesTest, MultipliesTheRateOfEveryOptimizer) {
  const auto& kinds = *job::Optimizer::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds.field_count(); ++i) {
    const std::string kind = kinds.field(i)->name();
    SCOPED_TRACE(kind);
    const std::string more = kind == "custom" ? " type: 'own'" : "";
    const auto one =
        Parse<job::Optimizer>(kind + " { learning_rate: .5" + more + " }");
    EXPECT_EQ(WithRateTimes(1, one).DebugString(), one.DebugString());
    const auto times =
        Parse<job::Optimizer>(kind + " { learning_rate: 1.5" + more + " }");
    job::Optimizer filled = times;
    FillDefaults(filled);
    EXPECT_EQ(WithRateTimes(3, one).DebugString(), filled.DebugString());
    EXPECT_OK(MakeOptimizer(WithRateTimes(3, one)));
  }
  // The default rate of SGD is .01.
  EXPECT_EQ(
      WithRateTimes(2, Parse<job::Optimizer>("sgd {}")).sgd().learning_rate(),
      .02);
}

TEST(RowOptimizerOfTest, IsTheTablesOrTheJobsAtTheTablesRate) {
  const auto job = Parse<job::Job>(
      "optimizer { sgd { learning_rate: .5 } }"
      "model {"
      "  sparse_table { name: 'a' }"
      "  sparse_table { name: 'b' learning_rate_multiplier: 3 }"
      "  sparse_table { name: 'c' learning_rate_multiplier: 3 "
      "                 optimizer { adam { learning_rate: .125 } } }"
      "  sparse_table { name: 'd' trainable: false "
      "                 optimizer { adam { learning_rate: .125 } } } }");
  const auto of = [&job](int table) {
    return RowOptimizerOf(job.model().sparse_table(table), job);
  };
  EXPECT_EQ(of(0).sgd().learning_rate(), .5);
  EXPECT_EQ(of(1).sgd().learning_rate(), 1.5);
  EXPECT_EQ(of(2).adam().learning_rate(), .375);
  // Keeps no slots beside rows that stay.
  EXPECT_EQ(of(3).sgd().learning_rate(), 1);
  EXPECT_EQ(of(3).sgd().momentum(), 0);
}

}  // namespace
}  // namespace parasol
