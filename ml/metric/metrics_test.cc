#include "ml/metric/metrics.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/metric/metric_results.h"
#include "ml/metric/metric_spec.h"

namespace parasol {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kAllOfBinary[] =
    "loss { binary_crossentropy { label_smoothing: .5 } } "
    "metric { accuracy {} } metric { auc {} } metric { log_loss {} } "
    "metric { root_mean_squared_error {} } metric { mean_absolute_error {} } "
    "metric { mean_prediction {} } metric { mean_label {} } "
    "metric { precision {} } metric { recall { threshold: .2 } } "
    "metric { f1 {} } metric { pr_auc {} } metric { r_squared {} }";
constexpr char kAllOfSquared[] =
    "loss { mean_squared_error {} } "
    "metric { mean_label {} } metric { mean_prediction {} } "
    "metric { mean_absolute_error {} } metric { root_mean_squared_error {} } "
    "metric { auc {} } metric { r_squared {} }";

job::Model Parse(const std::string& text) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return model;
}

absl::StatusOr<Metrics> Create(const std::string& text, int64_t outputs) {
  const job::Model model = Parse(text);
  ASSIGN_OR_RETURN(const LossSpec loss, ResolveLoss(model.loss(), outputs));
  return Metrics::Create(model, std::vector<OutputSpec>{{.loss = loss}});
}

Metrics Make(const std::string& text, int64_t outputs) {
  absl::StatusOr<Metrics> metrics = Create(text, outputs);
  EXPECT_OK(metrics.status());
  return *std::move(metrics);
}

Batch MakeBatch(int64_t size, std::vector<float> labels,
                std::vector<float> weights = {}) {
  Batch batch;
  batch.size = size;
  batch.labels = std::move(labels);
  batch.weights = std::move(weights);
  return batch;
}

auto Is(const std::string& name, double value) {
  return Pair(name, DoubleNear(value, 1e-9));
}

TEST(MetricsTest, WithoutAnyTheLossDecides) {
  struct Case {
    std::string loss;
    int64_t outputs;
    std::vector<std::string> want;
  };
  const Case cases[] = {
      {"loss { sparse_categorical_crossentropy {} }", 3, {"accuracy"}},
      {"loss { categorical_crossentropy {} }", 3, {"accuracy"}},
      {"loss { binary_crossentropy {} }", 1, {"accuracy", "auc"}},
      {"loss { binary_crossentropy {} }", 2, {"accuracy"}},
      {"loss { mean_squared_error {} }", 1, {"root_mean_squared_error"}},
      {"loss { pairwise_logistic {} }", 1, {}},
      {"loss { in_batch_softmax { temperature: 1 } }", 4, {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.loss);
    std::vector<std::string> names;
    for (const auto& [name, value] : Make(c.loss, c.outputs).Results()) {
      names.push_back(name);
      EXPECT_TRUE(std::isnan(value));
    }
    EXPECT_EQ(names, c.want);
  }
}

TEST(MetricsTest, OfClassesTheLargestOutputCounts) {
  const std::vector<float> outputs = {1, 3, 2, 5, 4, 5, 0, 0, 0};
  Metrics sparse = Make("loss { sparse_categorical_crossentropy {} }", 3);
  sparse.Add(MakeBatch(3, {1, 2, 0}), outputs);
  EXPECT_THAT(sparse.Results(), ElementsAre(Is("accuracy", 2.0 / 3)));

  Metrics dense = Make("loss { categorical_crossentropy {} }", 3);
  dense.Add(MakeBatch(3, {0, .8, .2, 0, 0, 1, 1, 0, 0}), outputs);
  EXPECT_THAT(dense.Results(), ElementsAre(Is("accuracy", 2.0 / 3)));
}

TEST(MetricsTest, AnOutputThatIsNanMakesTheAccuracyNan) {
  struct Case {
    std::string loss;
    int64_t outputs;
    std::vector<float> labels;
  };
  const Case cases[] = {
      {"sparse_categorical_crossentropy {}", 2, {0, 0}},
      {"categorical_crossentropy {}", 2, {1, 0, 1, 0}},
      {"binary_crossentropy {}", 2, {0, 0, 0, 0}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.loss);
    Metrics metrics =
        Make("loss { " + c.loss + " } metric { accuracy {} }", c.outputs);
    metrics.Add(MakeBatch(2, c.labels), {1, 0, 1, std::nanf("")});
    EXPECT_TRUE(std::isnan(metrics.Results()[0].second));
  }
}

TEST(MetricsTest, BinaryOnesAreOfTheSigmoidAndWithoutSmoothing) {
  Metrics metrics = Make(kAllOfBinary, 1);
  metrics.Add(MakeBatch(4, {1, 0, 1, 0}), {2, -1, -3, 1});
  const auto p = [](double z) { return 1 / (1 + std::exp(-z)); };
  const double wrong[] = {1 - p(2), p(-1), 1 - p(-3), p(1)};
  double log_loss = 0;
  double squares = 0;
  double sum = 0;
  for (const double error : wrong) {
    log_loss -= std::log(1 - error);
    squares += error * error;
    sum += error;
  }
  EXPECT_THAT(
      metrics.Results(),
      ElementsAre(Is("accuracy", .5), Is("auc", .5),
                  Is("log_loss", log_loss / 4),
                  Is("root_mean_squared_error", std::sqrt(squares / 4)),
                  Is("mean_absolute_error", sum / 4),
                  Is("mean_prediction", (p(2) + p(-1) + p(-3) + p(1)) / 4),
                  Is("mean_label", .5), Is("precision", .5),
                  // sigmoid(-1) is above .2, and sigmoid(-3) is not.
                  Is("recall_at_0.2", .5), Is("f1", .5),
                  Is("pr_auc", (1 + 2.0 / 4) / 2),
                  Is("r_squared", 1 - squares / (4 * .25))));
}

TEST(MetricsTest, TheLabelMayBeAmongTheKLargestOutputs) {
  const std::vector<float> outputs = {1, 3, 2, 0, 5, 4, 5, 5, 0, 0, 0, 9};
  Metrics sparse = Make(
      "loss { sparse_categorical_crossentropy {} } "
      "metric { top_k_accuracy { k: 2 } } metric { top_k_accuracy { k: 3 } }",
      4);
  sparse.Add(MakeBatch(3, {0, 2, 0}), outputs);
  // Two are larger than the first label's; three are as large as the second's,
  // which counts as the first of them; one is larger than the third's.
  EXPECT_THAT(sparse.Results(), ElementsAre(Is("top_2_accuracy", 2.0 / 3),
                                            Is("top_3_accuracy", 1)));
  Metrics dense = Make(
      "loss { categorical_crossentropy {} } metric { top_k_accuracy { k: 2 } }",
      4);
  dense.Add(MakeBatch(3, {1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0}), outputs);
  EXPECT_THAT(dense.Results(), ElementsAre(Is("top_2_accuracy", 2.0 / 3)));
}

TEST(MetricsTest, OfSquaredErrorTheOutputIsThePrediction) {
  Metrics metrics = Make(kAllOfSquared, 1);
  metrics.Add(MakeBatch(2, {1, 0}), {4, -4});
  EXPECT_THAT(metrics.Results(),
              ElementsAre(Is("mean_label", .5), Is("mean_prediction", 0),
                          Is("mean_absolute_error", 3.5),
                          Is("root_mean_squared_error", std::sqrt(12.5)),
                          Is("auc", 1), Is("r_squared", 1 - 25 / .5)));
}

TEST(MetricsTest, ExamplesCountByTheirWeights) {
  Metrics metrics = Make(
      "loss { mean_squared_error {} } metric { mean_label {} } "
      "metric { root_mean_squared_error {} }",
      1);
  metrics.Add(MakeBatch(3, {1, 2, 100}, {3, 1, 0}), {0, 0, 0});
  EXPECT_THAT(metrics.Results(),
              ElementsAre(Is("mean_label", 1.25),
                          Is("root_mean_squared_error", std::sqrt(7 / 4.0))));
}

TEST(MetricsTest, SeveralOutputsOfAnExampleAreAveraged) {
  Metrics metrics = Make(
      "loss { binary_crossentropy {} } metric { accuracy {} } "
      "metric { mean_label {} }",
      2);
  metrics.Add(MakeBatch(2, {1, 0, 1, 1}), {1, -1, -1, 1});
  EXPECT_THAT(metrics.Results(),
              ElementsAre(Is("accuracy", .75), Is("mean_label", .75)));
}

TEST(MetricsTest, ResultsAreOneLineForPeople) {
  EXPECT_EQ(Describe({{"accuracy", .97125}, {"auc", std::nan("")}}, 0.25),
            "accuracy 0.9712, auc nan, loss 0.2500");
}

TEST(MetricsTest, BatchesAndMergedPartsAddUp) {
  for (const char* model : {kAllOfBinary, kAllOfSquared}) {
    SCOPED_TRACE(model);
    const Batch first = MakeBatch(3, {1, 0, 1}, {1, 2, 3});
    const Batch second = MakeBatch(1, {0}, {4});
    Metrics together = Make(model, 1);
    together.Add(first, {1, 2, 3});
    together.Add(second, {1.5});
    Metrics merged = Make(model, 1);
    Metrics part = Make(model, 1);
    merged.Add(first, {1, 2, 3});
    part.Add(second, {1.5});
    merged.Merge(part);
    const auto want = together.Results();
    ASSERT_EQ(merged.Results().size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_THAT(merged.Results()[i], Is(want[i].first, want[i].second));
      EXPECT_FALSE(std::isnan(want[i].second)) << want[i].first;
    }
  }
}

TEST(MetricsTest, WhatHasNoMeaningIsNamed) {
  struct Case {
    std::string model;
    int64_t outputs;
    std::string want;
  };
  const Case cases[] = {
      {"", 1, "loss: no kind is chosen"},
      {"loss { mean_squared_error {} } metric {}", 1,
       "metric[0]: no metric is chosen"},
      {"loss { mean_squared_error {} } metric { accuracy {} }", 1,
       "metric[0]: accuracy can't be computed with the loss "
       "mean_squared_error"},
      {"loss { sparse_categorical_crossentropy {} } "
       "metric { accuracy {} } metric { log_loss {} }",
       3,
       "metric[1]: log_loss can't be computed with the loss "
       "sparse_categorical_crossentropy"},
      {"loss { binary_crossentropy {} } metric { auc {} }", 3,
       "metric[0]: auc needs a model of one output, this one has 3"},
      {"loss { mean_squared_error {} } metric { auc {} } metric { auc {} }", 1,
       "metric[1]: auc appears twice"},
      {"loss { binary_crossentropy {} } metric { f1 {} } "
       "metric { f1 { threshold: .5 } }",
       1, "metric[1]: f1 appears twice"},
      {"loss { binary_crossentropy {} } metric { recall { threshold: 1 } }", 1,
       "metric[0]: recall.threshold is 1, not above 0 and below 1"},
      {"loss { sparse_categorical_crossentropy {} } "
       "metric { top_k_accuracy {} }",
       3, "metric[0]: top_k_accuracy.k is 5, not at least 1 and below"},
      {"loss { binary_crossentropy {} } metric { r_squared {} }", 2,
       "metric[0]: r_squared needs a model of one output, this one has 2"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.want);
    EXPECT_THAT(
        Create(c.model, c.outputs).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.want)));
  }
}

// Probabilities have the metrics of their logits.
TEST(MetricsTest, OutputsMayBeProbabilities) {
  std::string text = kAllOfBinary;
  Metrics of_logits = Make(text, 1);
  text.replace(text.find("label_smoothing"), 0, "from_logits: false ");
  Metrics of_probabilities = Make(text, 1);
  const std::vector<float> logits = {-2, .5f, 3, -.25f, 1};
  std::vector<float> probabilities;
  for (const float z : logits) probabilities.push_back(1 / (1 + std::exp(-z)));
  const Batch batch = MakeBatch(5, {0, 1, 1, 1, 0}, {1, 2, 1, .5f, 1});
  of_logits.Add(batch, logits);
  of_probabilities.Add(batch, probabilities);
  const MetricResults want = of_logits.Results();
  const MetricResults got = of_probabilities.Results();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first);
    EXPECT_NEAR(got[i].second, want[i].second, 1e-6) << want[i].first;
  }
}

// Each output has its own labels, columns and examples that count.
TEST(MetricsTest, NamedOutputsAreApart) {
  const job::Model model = Parse(
      "output { name: 'a' loss { binary_crossentropy {} } } "
      "output { name: 'b' loss { mean_squared_error {} } "
      "  metric { mean_label {} } metric { mean_prediction {} } }");
  std::vector<OutputSpec> outputs;
  for (const job::Output& output : model.output()) {
    outputs.push_back(
        {.name = output.name(), .loss = *ResolveLoss(output.loss(), 1)});
  }
  ASSERT_OK_AND_ASSIGN(Metrics metrics, Metrics::Create(model, outputs));
  Batch batch = {.size = 3};
  batch.targets = {{.labels = {1, 0, 1}, .weights = {1, 1, 1}},
                   {.labels = {5, 7, 100}, .weights = {1, 1, 0}}};
  Metrics other = metrics;
  metrics.Add(batch, {2, 10, -2, 20, -1, 1000});
  other.Merge(metrics);
  EXPECT_THAT(other.Results(),
              ElementsAre(Is("a/accuracy", 2.0 / 3), Is("a/auc", 1),
                          Is("b/mean_label", 6), Is("b/mean_prediction", 15)));
  EXPECT_THAT(
      ResultNames(model, outputs),
      IsOkAndHolds(ElementsAre("loss", "a/loss", "a/accuracy", "a/auc",
                               "b/loss", "b/mean_label", "b/mean_prediction")));
}

// The examples of a user are ranked by the score; columns of losses come first.
TEST(MetricsTest, GroupsAreThoseOfTheirColumn) {
  Metrics metrics = Make(
      "loss { pairwise_logistic { group: 'session' } } "
      "metric { group_auc { group: 'user' } } metric { ndcg { group: 'user' } }"
      "metric { recall_at_k { group: 'user' k: 1 } } "
      "metric { recall_at_k { group: 'session' k: 2 } }",
      1);
  Metrics other = metrics;
  Batch batch = MakeBatch(3, {1, 0, 1}, {1, 2, 1});
  batch.columns = {{.keys = {5, 5, 6}}, {.keys = {1, 1, 2}}};
  metrics.Add(batch, {1, 3, 0});
  batch = MakeBatch(2, {0, 1}, {1, 1});
  batch.columns = {{.keys = {6, 6}}, {.keys = {2, 1}}};
  other.Add(batch, {-1, 4});
  metrics.Merge(other);
  // User 1: 4 (1), 3 (0, weight 2), 1 (1); user 2: 0 (1), -1 (0).
  const double ndcg = (1 + 1 / std::log2(4.0)) / (1 + 1 / std::log2(3.0));
  EXPECT_THAT(
      metrics.Results(),
      ElementsAre(Is("group_auc", (4 * .5 + 2 * 1) / 6),
                  Is("ndcg_at_10", (ndcg + 1) / 2),
                  Is("recall_at_1", (.5 + 1) / 2), Is("recall_at_2", 1)));
}

TEST(MetricsTest, CalibrationIsMeanPredictionOverMeanLabel) {
  Metrics metrics =
      Make("loss { binary_crossentropy {} } metric { calibration {} }", 1);
  EXPECT_TRUE(std::isnan(metrics.Results()[0].second));
  metrics.Add(MakeBatch(1, {0}), {5});
  EXPECT_TRUE(std::isnan(metrics.Results()[0].second));
  Metrics other =
      Make("loss { binary_crossentropy {} } metric { calibration {} }", 1);
  other.Add(MakeBatch(2, {1, 0}, {2, 1}), {0, 0});
  EXPECT_THAT(other.Results(), ElementsAre(Is("calibration", 1.5 / 2)));
  metrics.Merge(other);
  EXPECT_THAT(
      metrics.Results(),
      ElementsAre(Is("calibration", (1.5 + 1 / (1 + std::exp(-5.0))) / 2)));
}

TEST(MetricsTest, AFaultOfARankingNamesItsField) {
  const std::pair<std::string, std::string> cases[] = {
      {"ndcg {}", "metric[0]: ndcg.group is not set"},
      {"ndcg { group: 'g' k: 0 }", "metric[0]: ndcg.k is 0, not at least 1"},
      {"group_auc { group: 'g' k: 3 }", "metric[0]: group_auc.k is 3"},
      {"recall_at_k { group: 'g' } } metric { recall_at_k { group: 'h' }",
       "metric[1]: recall_at_10 appears twice"},
  };
  for (const auto& [metric, want] : cases) {
    SCOPED_TRACE(want);
    EXPECT_THAT(
        Create("loss { mean_squared_error {} } metric { " + metric + " }", 1)
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(want)));
  }
  EXPECT_THAT(Create("loss { in_batch_softmax { temperature: 1 } } "
                     "metric { recall_at_k { group: 'g' } }",
                     4)
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("recall_at_k can't be computed with the loss "
                                 "in_batch_softmax")));
}

TEST(MetricsTest, ALossWithoutLabelsHasNoMetricThatReadsThem) {
  for (const std::string metric :
       {"accuracy", "top_k_accuracy", "auc", "log_loss", "mean_prediction"}) {
    EXPECT_THAT(
        Create("loss { in_batch_softmax { temperature: 1 } } metric { " +
                   metric + " {} }",
               4)
            .status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(metric + " can't be computed with the loss")));
  }
}

}  // namespace
}  // namespace parasol
