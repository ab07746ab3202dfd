#include "cluster/job/global_batch_rate.h"

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

job::Optimizer Parse(const std::string& text) {
  job::Optimizer optimizer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &optimizer))
      << text;
  return optimizer;
}

// The guide's program: a rate for each number of replicas.
constexpr char kGuide[] =
    "sgd {} learning_rate_by_global_batch { batch: 5 rate: 0.1 batch: 10 rate: "
    "0.15 }";

TEST(GlobalBatchRateTest, TheRateIsThatOfTheReplicasBatchesTogether) {
  for (const auto& [replicas, rate] : {std::pair(1, .1), std::pair(2, .15)}) {
    job::Optimizer optimizer = Parse(kGuide);
    ASSERT_OK(SetRateOfGlobalBatch(/*batch=*/5, replicas, optimizer));
    EXPECT_EQ(optimizer.sgd().learning_rate(), rate);
    EXPECT_FALSE(optimizer.has_learning_rate_by_global_batch());
  }
}

TEST(GlobalBatchRateTest, ABatchWithoutARateIsNamed) {
  job::Optimizer optimizer = Parse(kGuide);
  EXPECT_THAT(SetRateOfGlobalBatch(5, 3, optimizer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no rate for a global batch of 15 examples (3 "
                                 "replicas of 5), only for 5, 10;")));
}

TEST(GlobalBatchRateTest, ALinearRateGrowsWithTheBatch) {
  job::Optimizer optimizer = Parse(
      "adam { learning_rate: 7 } learning_rate_by_global_batch { batch: 256 "
      "rate: 0.1 linear: true }");
  ASSERT_OK(SetRateOfGlobalBatch(128, 8, optimizer));
  EXPECT_DOUBLE_EQ(optimizer.adam().learning_rate(), .4);
}

TEST(GlobalBatchRateTest, EveryOptimizerHasARate) {
  const auto* const kinds =
      job::Optimizer::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i) {
    job::Optimizer optimizer = Parse(kinds->field(i)->name() +
                                     " {} learning_rate_by_global_batch { "
                                     "batch: 1 rate: 0.5 }");
    ASSERT_OK(SetRateOfGlobalBatch(1, 1, optimizer));
    EXPECT_THAT(optimizer.ShortDebugString(), HasSubstr("learning_rate: 0.5"));
  }
}

TEST(GlobalBatchRateTest, AnOptimizerWithoutRatesOfBatchesStaysAsItIs) {
  job::Optimizer optimizer = Parse("sgd { learning_rate: 0.3 }");
  ASSERT_OK(SetRateOfGlobalBatch(5, 1, optimizer));
  EXPECT_EQ(optimizer.sgd().learning_rate(), .3);
}

TEST(GlobalBatchRateTest, FaultsNameTheFieldAndTheValue) {
  const std::vector<std::tuple<std::string, std::string>> cases = {
      {"", ": 0 batches and 0 rates;"},
      {"batch: 5", ": 1 batches and 0 rates;"},
      {"batch: 5 rate: .1 rate: .2", ": 1 batches and 2 rates;"},
      {"batch: 0 rate: .1", ".batch: 0 examples;"},
      {"batch: 5 rate: -.1", ".rate: -0.1;"},
      {"batch: 5 rate: nan", ".rate: nan;"},
      {"batch: 5 rate: .1 batch: 5 rate: .2", ".batch: 5 is there twice;"},
      {"batch: 5 rate: .1 batch: 6 rate: .2 linear: true",
       ".linear: 2 batches;"},
  };
  for (const auto& [rates, fault] : cases) {
    SCOPED_TRACE(rates);
    job::Optimizer optimizer =
        Parse("sgd {} learning_rate_by_global_batch { " + rates + " }");
    const auto refused =
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("learning_rate_by_global_batch" + fault));
    EXPECT_THAT(CheckGlobalBatchRates(optimizer), refused);
    EXPECT_THAT(SetRateOfGlobalBatch(5, 1, optimizer), refused);
  }
}

}  // namespace
}  // namespace parasol
