// Models whose losses compare the examples of a batch with each other.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/model/graph_inputs.h"
#include "ml/model/model.h"
#include "ml/model/testing/model_fixture.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// Two towers, and the score of both with pairs of its own.
job::Model Towers() {
  return ParseModel(R"(
    input_shape: 3
    layer { name: "query" input: "input" dense { units: 4 activation: TANH } }
    layer { name: "item" input: "input" dense { units: 4 activation: TANH } }
    layer { name: "both" input: ["query", "item"] concatenate {} }
    layer { name: "towers" reshape { shape: [2, 4] } }
    layer { name: "score" input: ["query", "item"] dot {} }
    output { name: "towers" mask: "bought"
             loss { in_batch_softmax { temperature: 0.5 candidate: "item"
                                       candidate_probability: "share" } } }
    output { name: "score" weight: 0.5 label { column: "y" }
             loss { pairwise_logistic { group: "user" } } })");
}

Batch BatchOf(int64_t size, int64_t first) {
  Batch batch = RandomBatch(size, {3}, 1);
  batch.labels.clear();
  batch.targets.resize(2);
  batch.columns.resize(3);
  for (int64_t i = first; i < first + size; ++i) {
    const bool is_bought = i % 4 != 1;
    batch.targets[0].weights.push_back(is_bought ? 1 : 0);
    batch.targets[1].labels.push_back(static_cast<float>(i % 3));
    batch.targets[1].weights.push_back(1);
    batch.columns[0].keys.push_back(i * i % 5);
    batch.columns[1].numbers.push_back(static_cast<float>(1 + i % 7) / 8);
    batch.columns[2].keys.push_back(i % 2);
    batch.weights.push_back(static_cast<float>(1 + i % 3) / 2);
  }
  SetScales(batch);
  return batch;
}

double Dot(const float* a, const float* b) {
  double sum = 0;
  for (int k = 0; k < 4; ++k) sum += double{a[k]} * b[k];
  return sum;
}

double TowerLoss(const Batch& batch, const float* rows, int64_t i) {
  double sum = 0;
  double own = 0;
  for (int64_t j = 0; j < batch.size; ++j) {
    const bool is_hit =
        j != i && batch.columns[0].keys[j] == batch.columns[0].keys[i];
    if (batch.targets[0].weights[j] == 0 || is_hit) continue;
    const double logit = Dot(rows + i * 9, rows + j * 9 + 4) / .5 -
                         std::log(batch.columns[1].numbers[j]);
    if (j == i) own = logit;
    sum += std::exp(logit);
  }
  return std::log(sum) - own;
}

double PairLoss(const Batch& batch, const float* rows, int64_t i) {
  double sum = 0;
  int pairs = 0;
  for (int64_t j = 0; j < batch.size; ++j) {
    if (batch.columns[2].keys[j] != batch.columns[2].keys[i] ||
        batch.targets[1].labels[j] >= batch.targets[1].labels[i]) {
      continue;
    }
    sum += std::log1p(std::exp(double{rows[j * 9 + 8]} - rows[i * 9 + 8]));
    ++pairs;
  }
  return pairs == 0 ? 0 : sum / pairs;
}

// The sum of the model's losses, from its outputs: of each example its two
// towers' vectors and the score.
double LossSum(const Batch& batch, const std::vector<float>& outputs) {
  double sum = 0;
  for (int64_t i = 0; i < batch.size; ++i) {
    if (batch.targets[0].weights[i] > 0) {
      sum += batch.weights[i] * batch.targets[0].scale *
             TowerLoss(batch, outputs.data(), i);
    }
    sum += batch.weights[i] * .5 * PairLoss(batch, outputs.data(), i);
  }
  return sum;
}

class ComparedExamplesTest : public ModelTestBase {};

// Batches differ in their pairs and candidates, and the third is smaller: on a
// CUDA device the first pass is recorded and the others replay it.
TEST_P(ComparedExamplesTest, LossesAreThoseOfTheWholeBatch) {
  const std::unique_ptr<Model> model = Make(Towers());
  Values values = RandomValues(*model);
  SetAll(*model, values);
  for (const Batch& batch : {BatchOf(24, 0), BatchOf(24, 5), BatchOf(7, 2)}) {
    ASSERT_OK_AND_ASSIGN(const Evaluated evaluated, Evaluate(*model, batch));
    const double want = LossSum(batch, evaluated.outputs);
    EXPECT_NEAR(evaluated.loss_sum, want, 2e-5 * want);

    const Values gradients = GradientsOf(*model, batch);
    constexpr float kStep = 1.0f / 256;
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t j = 0; j < values[i].size(); j += 3) {
        const float value = values[i][j];
        const auto mean_at = [&](float moved) {
          values[i][j] = moved;
          Set(*model, i, values[i]);
          const auto at = Evaluate(*model, batch);
          EXPECT_OK(at.status());
          return LossSum(batch, at->outputs) / static_cast<double>(batch.size);
        };
        const double above = mean_at(value + kStep);
        const double difference = (above - mean_at(value - kStep)) / 2 / kStep;
        mean_at(value);
        EXPECT_NEAR(gradients[i][j], difference, 3e-4) << i << ", " << j;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ComparedExamplesTest, DevicesUnderTest(),
                         DeviceName);

TEST(ComparedExamplesInputsTest, LossesReadTheFirstColumns) {
  job::Model model = Towers();
  model.mutable_output(1)->add_metric()->mutable_ndcg()->set_group("user");
  model.mutable_output(1)->add_metric()->mutable_group_auc()->set_group("day");
  ASSERT_OK_AND_ASSIGN(const Graph graph, ResolveGraph(model));
  const auto names = [](const ModelInputs& inputs) {
    std::vector<std::string> names;
    for (const ExampleColumn& column : inputs.columns) {
      names.push_back(column.name);
    }
    return names;
  };
  ASSERT_OK_AND_ASSIGN(const ModelInputs training,
                       TrainingInputsOf(model, graph));
  EXPECT_THAT(names(training), testing::ElementsAre("item", "share", "user"));
  ASSERT_OK_AND_ASSIGN(const ModelInputs all, InputsOf(model, graph));
  EXPECT_THAT(names(all), testing::ElementsAre("item", "share", "user", "day"));
}

TEST(ComparedExamplesGraphTest, OutputsHaveTheShapeThatTheLossCompares) {
  const std::string layers =
      "input_shape: 3 layer { name: 'both' dense { units: 8 } } ";
  EXPECT_THAT(ResolveGraph(ParseModel(
                  layers + "output { name: 'both' loss { in_batch_softmax { "
                           "temperature: 1 } } }")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is [8], not [2, width]")));
  job::Model model = ParseModel(
      layers +
      "layer { reshape { shape: [2, 4] } } loss { in_batch_softmax { "
      "temperature: 1 } }");
  EXPECT_OK(ResolveGraph(model));
  model.mutable_loss()->mutable_mean_squared_error();
  EXPECT_THAT(ResolveGraph(model),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is [2, 4], not one number per class")));
}

}  // namespace
}  // namespace parasol
