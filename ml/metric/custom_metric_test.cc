#include "ml/metric/custom_metric.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/input/feature/batch.h"
#include "ml/metric/metric_spec.h"
#include "ml/metric/metrics.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

// The largest weighted error.
class Largest : public CustomMetric {
 public:
  std::unique_ptr<CustomMetric> Clone() const override {
    return std::make_unique<Largest>(*this);
  }
  void Add(absl::Span<const float> outputs, absl::Span<const float> labels,
           double weight) override {
    largest_ = std::max(largest_, weight * (outputs[0] - labels[0]));
  }
  void Merge(const CustomMetric& other) override {
    largest_ = std::max(largest_, static_cast<const Largest&>(other).largest_);
  }
  double Value() const override { return largest_; }

 private:
  double largest_ = 0;
};

absl::StatusOr<std::unique_ptr<CustomMetric>> MakeLargest(
    const job::Custom&, const LossSpec& loss) {
  if (loss.outputs != 1) {
    return absl::InvalidArgumentError("it is of one output");
  }
  return std::make_unique<Largest>();
}

const CustomMetricRegistration kRegistration("largest", MakeLargest);

job::Model Parse(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

std::vector<OutputSpec> OutputsOf(const job::Model& model, int64_t outputs) {
  if (model.output().empty()) {
    return {{.loss = *ResolveLoss(model.loss(), outputs)}};
  }
  std::vector<OutputSpec> all;
  for (const job::Output& output : model.output()) {
    all.push_back(
        {.name = output.name(), .loss = *ResolveLoss(output.loss(), 1)});
  }
  return all;
}

constexpr char kSquared[] = "loss { mean_squared_error {} } ";

Batch BatchOf(std::vector<float> labels, std::vector<float> weights) {
  Batch batch;
  batch.size = static_cast<int64_t>(labels.size());
  batch.labels = std::move(labels);
  batch.weights = std::move(weights);
  return batch;
}

TEST(CustomMetricTest, IsAddedUpBesideOthersAndMergedInAnyOrder) {
  const job::Model model =
      Parse(std::string(kSquared) +
            "metric { mean_label {} } metric { custom { type: 'largest' } }");
  ASSERT_OK_AND_ASSIGN(const Metrics none,
                       Metrics::Create(model, OutputsOf(model, 1)));
  Metrics first = none;
  first.Add(BatchOf({1, 1}, {1, 2}), std::vector<float>{3, 4});
  Metrics second = none;
  second.Add(BatchOf({3}, {1}), std::vector<float>{8});
  EXPECT_THAT(first.Results(),
              ElementsAre(Pair("mean_label", 1), Pair("largest", 6)));
  EXPECT_THAT(second.Results(),
              ElementsAre(Pair("mean_label", 3), Pair("largest", 5)));
  Metrics merged = second;
  merged.Merge(first);
  first.Merge(second);
  EXPECT_EQ(merged.Results(), first.Results());
  EXPECT_THAT(merged.Results(),
              ElementsAre(Pair("mean_label", 1.5), Pair("largest", 6)));
  // A copy has sums of its own.
  EXPECT_EQ(none.Results()[1].second, 0);
  EXPECT_EQ(second.Results()[1].second, 5);
}

TEST(CustomMetricTest, IsOneOfANamedOutput) {
  const job::Model model = Parse(
      "output { name: 'price' loss { mean_squared_error {} } "
      "  metric { custom { type: 'largest' } } }");
  const std::vector<OutputSpec> outputs = OutputsOf(model, 1);
  EXPECT_THAT(ResultNames(model, outputs),
              IsOkAndHolds(ElementsAre("loss", "price/loss", "price/largest")));
}

TEST(CustomMetricTest, TheChiefKnowsItsNameWithoutItsCode) {
  const job::Model model = Parse(
      "loss { custom { type: 'any' } } metric { accuracy {} } "
      "metric { custom { type: 'elsewhere' } }");
  const std::vector<OutputSpec> outputs = OutputsOf(model, 1);
  EXPECT_THAT(ResultNames(model, outputs),
              IsOkAndHolds(ElementsAre("loss", "accuracy", "elsewhere")));
  EXPECT_THAT(Metrics::Create(Parse(std::string(kSquared) +
                                    "metric { custom { type: 'elsewhere' } }"),
                              OutputsOf(Parse(kSquared), 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("no custom metric \"elsewhere\""),
                             HasSubstr("(it has: largest)"))));
}

std::string NameWith(const std::string& parameters) {
  return NameOf(
      Parse("metric { custom { type: 'x' " + parameters + " } }").metric(0));
}

TEST(CustomMetricTest, ParametersTellNamesApart) {
  EXPECT_EQ(NameWith(""), "x");
  EXPECT_EQ(NameWith("parameter { name: 'share' value: '0.9' }"),
            "x(share=0.9)");
  EXPECT_EQ(NameWith("parameter { name: 'a' value: 'b/c, (d)=%' } "
                     "parameter { name: 'e' }"),
            "x(a=b%2Fc%2C%20%28d%29%3D%25,e=)");
  const std::string is_long(1000, 'v');
  const std::string one =
      NameWith("parameter { name: 'a' value: '" + is_long + "1' }");
  const std::string other =
      NameWith("parameter { name: 'a' value: '" + is_long + "2' }");
  EXPECT_NE(one, other);
  EXPECT_THAT(one, AllOf(HasSubstr("x(#"), SizeIs(20)));
}

TEST(CustomMetricTest, OneTypeMayBeThereWithSeveralParameters) {
  const job::Model model = Parse(std::string(kSquared) +
                                 "metric { custom { type: 'elsewhere' "
                                 "parameter { name: 'q' value: '1' } } "
                                 "} metric { custom { type: 'elsewhere' "
                                 "parameter { name: 'q' value: '2' } "
                                 "} } metric { custom { type: 'elsewhere' } }");
  EXPECT_THAT(ResultNames(model, OutputsOf(model, 1)),
              IsOkAndHolds(ElementsAre("loss", "elsewhere(q=1)",
                                       "elsewhere(q=2)", "elsewhere")));
}

TEST(CustomMetricTest, ACustomLossHasNoMetricsByDefault) {
  const job::Model model = Parse("loss { custom { type: 'any' } }");
  EXPECT_THAT(ResolveMetrics(model, OutputsOf(model, 1)[0].loss),
              IsOkAndHolds(IsEmpty()));
}

TEST(CustomMetricTest, WhatCannotBeIsNamed) {
  struct Case {
    std::string metrics;
    int64_t outputs;
    std::string message;
  };
  const Case cases[] = {
      {"metric { custom {} }", 1, "metric[0]: custom.type is \"\""},
      {"metric { custom { type: 'a/b' } }", 1, "custom.type is \"a/b\""},
      {"metric { custom { type: 'loss' } }", 1, "as another result"},
      {"metric { custom { type: 'accuracy' } }", 1, "as another result"},
      {"metric { custom { type: 'examples' } }", 1, "field of evaluations"},
      {"metric { custom { type: 'chief_epoch' } }", 1, "field of evaluations"},
      {"metric { custom { type: 'largest' } }", 2,
       "custom \"largest\": it is of one output"},
      {"metric { custom { type: 'x' } } metric { custom { type: 'x' } }", 1,
       "metric[1]: x appears twice"},
      {"metric { custom { type: 'x' parameter { name: 'a' value: '1' } } } "
       "metric { custom { type: 'x' parameter { name: 'a' value: '1' } } }",
       1, "metric[1]: x(a=1) appears twice"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.metrics);
    const job::Model model = Parse(kSquared + c.metrics);
    EXPECT_THAT(
        ResolveMetrics(model, OutputsOf(model, c.outputs)[0].loss),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

}  // namespace
}  // namespace parasol
