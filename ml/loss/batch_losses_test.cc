// Compares the losses that compare the examples of a batch with each other:
// with PyTorch's and TensorFlow Recommenders', and with plain loops in float64;
// gradients with differences of the loops' losses.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/kernel/testing/reference.h"
#include "ml/loss/loss.h"
#include "ml/loss/loss_kinds.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::nlohmann::json;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NanSensitiveFloatEq;
using ::testing::Pointwise;

job::Loss Parse(const std::string& text) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return loss;
}

// A batch, with outputs in double precision.
struct Examples {
  int64_t size = 0;
  std::vector<double> outputs;
  std::vector<float> labels = {};
  std::vector<float> weights = {};
  std::vector<float> counts = {};
  std::vector<uint64_t> keys = {};  // groups or candidates
  std::vector<float> probabilities = {};

  double weight(int64_t i) const { return weights.empty() ? 1 : weights[i]; }
  bool counted(int64_t i) const { return counts.empty() || counts[i] != 0; }
};

struct Result {
  std::vector<float> losses;
  std::vector<float> gradient;
};

using Reference = std::function<std::vector<double>(const Examples&)>;

std::vector<double> PairwiseLogistic(const Examples& e) {
  std::vector<double> losses;
  for (int64_t i = 0; i < e.size; ++i) {
    double sum = 0;
    int pairs = 0;
    for (int64_t j = 0; j < e.size; ++j) {
      const bool is_pair = e.counted(i) && e.counted(j) &&
                           e.labels[j] < e.labels[i] &&
                           (e.keys.empty() || e.keys[j] == e.keys[i]);
      if (!is_pair) continue;
      sum += std::log1p(std::exp(e.outputs[j] - e.outputs[i]));
      ++pairs;
    }
    losses.push_back(pairs == 0 ? 0 : e.weight(i) * sum / pairs);
  }
  return losses;
}

Reference InBatchSoftmax(double temperature) {
  return [temperature](const Examples& e) {
    const auto both = static_cast<int64_t>(e.outputs.size()) / e.size;
    std::vector<double> losses;
    for (int64_t i = 0; i < e.size; ++i) {
      double own = 0;
      double sum = 0;
      for (int64_t j = 0; j < e.size; ++j) {
        const bool is_hit = j != i && !e.keys.empty() && e.keys[j] == e.keys[i];
        if (is_hit || !e.counted(j)) continue;
        double logit = 0;
        for (int64_t k = 0; k < both / 2; ++k) {
          logit += e.outputs[i * both + k] *
                   e.outputs[j * both + both / 2 + k] / temperature;
        }
        if (!e.probabilities.empty()) logit -= std::log(e.probabilities[j]);
        if (j == i) own = logit;
        sum += std::exp(logit);
      }
      losses.push_back(e.counted(i) ? e.weight(i) * (std::log(sum) - own) : 0);
    }
    return losses;
  };
}

// The gradient of the mean of InBatchSoftmax(temperature) by the outputs, for
// batches that are too large for differences.
std::vector<double> InBatchSoftmaxGradient(const Examples& e,
                                           double temperature) {
  const auto both = static_cast<int64_t>(e.outputs.size()) / e.size;
  const int64_t width = both / 2;
  const double* const q = e.outputs.data();
  const double* const c = q + width;
  std::vector<double> gradient(e.outputs.size());
  std::vector<double> shares(e.size);
  for (int64_t i = 0; i < e.size; ++i) {
    if (!e.counted(i)) continue;
    double sum = 0;
    for (int64_t j = 0; j < e.size; ++j) {
      const bool is_hit = j != i && !e.keys.empty() && e.keys[j] == e.keys[i];
      shares[j] = 0;
      if (is_hit || !e.counted(j)) continue;
      double logit = 0;
      for (int64_t k = 0; k < width; ++k) {
        logit += q[i * both + k] * c[j * both + k] / temperature;
      }
      shares[j] =
          std::exp(logit) / (e.probabilities.empty() ? 1 : e.probabilities[j]);
      sum += shares[j];
    }
    const double scale =
        e.weight(i) / (static_cast<double>(e.size) * temperature);
    for (int64_t j = 0; j < e.size; ++j) {
      const double by_product = scale * (shares[j] / sum - (i == j ? 1 : 0));
      for (int64_t k = 0; k < width; ++k) {
        gradient[i * both + k] += by_product * c[j * both + k];
        gradient[j * both + width + k] += by_product * q[i * both + k];
      }
    }
  }
  return gradient;
}

class BatchLossesTest : public DeviceTest {
 protected:
  Result Compute(const std::string& text, const Examples& e) {
    job::Loss spec = Parse(text);
    FillDefaults(spec);
    const auto outputs = static_cast<int64_t>(e.outputs.size());
    const auto resolved = ResolveLoss(spec, outputs / e.size);
    EXPECT_OK(resolved.status());
    const Loss loss(*resolved);
    ExampleValues keys = {.keys = e.keys};
    ExampleValues probabilities = {.numbers = e.probabilities};
    std::vector<const ExampleValues*> columns;
    if (!e.keys.empty()) columns.push_back(&keys);
    if (!e.probabilities.empty()) columns.push_back(&probabilities);
    Comparison comparison;
    loss.Compare({.size = e.size,
                  .labels = e.labels,
                  .counts = e.counts,
                  .columns = columns},
                 comparison);
    // What lies in the scratch memory before must not matter.
    std::vector<float> scratch(loss.ScratchElements(e.size), std::nanf(""));
    const auto put = [this](const auto& values) {
      return values.empty() ? nullptr : Put(values);
    };
    float* const losses = Put(std::vector<float>(e.size, std::nanf("")));
    float* const gradient = Put(std::vector<float>(outputs, std::nanf("")));
    const std::vector<float> values(e.outputs.begin(), e.outputs.end());
    const Loss::Inputs inputs = {.outputs = Put(values),
                                 .labels = put(e.labels),
                                 .weights = put(e.weights),
                                 .examples = e.size,
                                 .integers = put(comparison.integers),
                                 .numbers = put(comparison.numbers),
                                 .scratch = Put(scratch)};
    float* const alone = Put(std::vector<float>(e.size, std::nanf("")));
    EXPECT_OK(loss.Compute(device(), inputs, losses, gradient));
    EXPECT_OK(loss.Compute(device(), inputs, alone, nullptr));
    const Result result = {Get(losses, e.size), Get(gradient, outputs)};
    EXPECT_THAT(Get(alone, e.size),
                Pointwise(NanSensitiveFloatEq(), result.losses));
    return result;
  }

  void ExpectIsReference(const std::string& text, const Examples& examples,
                         const Reference& reference) {
    constexpr double kStep = 1e-6;
    const Result result = Compute(text, examples);
    const std::vector<double> want = reference(examples);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(result.losses[i], want[i], 1e-5 * (1 + want[i])) << i;
    }
    Examples moved = examples;
    const auto mean = [&] {
      double sum = 0;
      for (const double loss : reference(moved)) sum += loss;
      return sum / static_cast<double>(examples.size);
    };
    for (size_t i = 0; i < moved.outputs.size(); ++i) {
      const double value = moved.outputs[i];
      moved.outputs[i] = value + kStep;
      const double above = mean();
      moved.outputs[i] = value - kStep;
      const double difference = (above - mean()) / (2 * kStep);
      moved.outputs[i] = value;
      EXPECT_NEAR(result.gradient[i], difference, 2e-6) << i;
    }
    // A second pass gives the same bits.
    const Result again = Compute(text, examples);
    EXPECT_EQ(again.losses, result.losses);
    EXPECT_EQ(again.gradient, result.gradient);
  }
};

Examples RandomExamples(int64_t size, int64_t outputs, double scale) {
  Examples examples = {.size = size,
                       .outputs = RandomMatrix(size, outputs, 5).values};
  for (double& value : examples.outputs) value *= scale;
  const std::vector<double> random = RandomMatrix(size, 1, 6).values;
  for (int64_t i = 0; i < size; ++i) {
    examples.labels.push_back(static_cast<float>(i * 7 % 4));
    examples.weights.push_back(static_cast<float>(1 + random[i]));
    examples.probabilities.push_back(
        static_cast<float>((random[i] + 1.01) / 2.02));
  }
  return examples;
}

TEST_P(BatchLossesTest, PairwiseLogisticIsTheReference) {
  for (const int64_t size : {1, 2, 5, 40, 70}) {
    SCOPED_TRACE(size);
    Examples examples = RandomExamples(size, 1, 4);
    examples.probabilities.clear();
    ExpectIsReference("pairwise_logistic {}", examples, PairwiseLogistic);
    examples.weights.clear();
    ExpectIsReference("pairwise_logistic {}", examples, PairwiseLogistic);
    for (int64_t i = 0; i < size; ++i) examples.keys.push_back(i % 3 * 99);
    ExpectIsReference("pairwise_logistic { group: 'g' }", examples,
                      PairwiseLogistic);
    examples.weights = RandomExamples(size, 1, 4).weights;
    for (int64_t i = 0; i < size; ++i) examples.counts.push_back(i % 5 != 1);
    ExpectIsReference("pairwise_logistic { group: 'g' }", examples,
                      PairwiseLogistic);
  }
}

TEST_P(BatchLossesTest, InBatchSoftmaxIsTheReference) {
  for (const int64_t size : {1, 2, 5, 34}) {
    for (const int64_t width : {1, 3, 16}) {
      SCOPED_TRACE(absl::StrCat(size, " examples, width ", width));
      Examples all = RandomExamples(size, 2 * width, 1);
      all.labels.clear();
      Examples some = {.size = size, .outputs = all.outputs};
      ExpectIsReference("in_batch_softmax {}", some, InBatchSoftmax(1));
      some.weights = all.weights;
      ExpectIsReference("in_batch_softmax { temperature: 0.5 }", some,
                        InBatchSoftmax(.5));
      some.probabilities = all.probabilities;
      ExpectIsReference("in_batch_softmax { candidate_probability: 'p' }", some,
                        InBatchSoftmax(1));
      for (int64_t i = 0; i < size; ++i) all.keys.push_back(i * i % 7);
      for (int64_t i = 0; i < size; ++i) all.counts.push_back(i % 4 != 2);
      ExpectIsReference(
          "in_batch_softmax { temperature: 2 candidate: 'c' "
          "candidate_probability: 'p' }",
          all, InBatchSoftmax(2));
    }
  }
}

// Batches of one block of rows, and of several with one row in the last.
TEST_P(BatchLossesTest, LargeBatchesGiveTheReferenceInBlocksOfRows) {
  for (const int64_t size : {1024, 1025, 2049}) {
    SCOPED_TRACE(size);
    Examples examples = RandomExamples(size, 6, 1);
    examples.labels.clear();
    for (int64_t i = 0; i < size; ++i) examples.keys.push_back(i * i % 997);
    for (int64_t i = 0; i < size; ++i) examples.counts.push_back(i % 4 != 2);
    const Result result = Compute(
        "in_batch_softmax { temperature: 0.5 candidate: 'c' "
        "candidate_probability: 'p' }",
        examples);
    const std::vector<double> losses = InBatchSoftmax(.5)(examples);
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_NEAR(result.losses[i], losses[i], 1e-5 * (1 + losses[i])) << i;
    }
    // Sums of up to 2,049 float32 that are of the size of 1 / size.
    const std::vector<double> gradient = InBatchSoftmaxGradient(examples, .5);
    for (size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(result.gradient[i], gradient[i],
                  1e-5 * (1. / size + std::abs(gradient[i])))
          << i;
    }
  }
}

TEST_P(BatchLossesTest, MemoryGrowsWithTheBatchAndNotWithItsSquare) {
  for (const char* text : {"in_batch_softmax {}", "pairwise_logistic {}"}) {
    job::Loss spec = Parse(text);
    FillDefaults(spec);
    const bool is_pairwise = spec.has_pairwise_logistic();
    const Loss loss(*ResolveLoss(spec, is_pairwise ? 1 : 128));
    EXPECT_LE(loss.ScratchElements(1 << 20),
              512 * loss.ScratchElements(1 << 11));
    EXPECT_LT(loss.ScratchElements(1 << 20), int64_t{1500} << 20);
  }
}

// Sums of up to 40 float32, and products of them.
TEST_P(BatchLossesTest, AreThoseOfPyTorchAndTensorFlowRecommenders) {
  std::ifstream file("ml/loss/testdata/batch_cases.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    SCOPED_TRACE(line.substr(0, 80));
    const json golden = json::parse(line);
    Examples examples;
    examples.size = std::ssize(golden["outputs"]);
    for (const json& row : golden["outputs"]) {
      for (const json& value : row) examples.outputs.push_back(value);
    }
    golden["labels"].get_to(examples.labels);
    golden["weights"].get_to(examples.weights);
    golden["keys"].get_to(examples.keys);
    golden["probabilities"].get_to(examples.probabilities);
    const Result result = Compute(golden["loss"], examples);
    for (int64_t i = 0; i < examples.size; ++i) {
      const double want = golden["losses"][i];
      EXPECT_NEAR(result.losses[i], want, 2e-6 * (1 + want)) << i;
    }
    const auto width = std::ssize(golden["outputs"][0]);
    for (int64_t i = 0; i < examples.size * width; ++i) {
      const double want = golden["gradient"][i / width][i % width];
      EXPECT_NEAR(result.gradient[i], want, 2e-6 * (1 + std::abs(want))) << i;
    }
  }
  EXPECT_EQ(cases, 52);
}

// log(1 + e^-1) and log(1 + e^2), and nothing of the lowest.
TEST_P(BatchLossesTest, AnExampleAboveNoOtherHasNoLoss) {
  const Result result =
      Compute("pairwise_logistic {}",
              {.size = 3, .outputs = {1, 0, -1}, .labels = {1, 0, .5}});
  EXPECT_NEAR(result.losses[0],
              (std::log1p(std::exp(-1.0)) + std::log1p(std::exp(-2.0))) / 2,
              1e-6);
  EXPECT_EQ(result.losses[1], 0);
  EXPECT_NEAR(result.losses[2], std::log1p(std::exp(1.0)), 1e-6);

  const Result equal =
      Compute("pairwise_logistic {}",
              {.size = 3, .outputs = {1, 0, -1}, .labels = {2, 2, 2}});
  EXPECT_THAT(equal.losses, Each(0));
  EXPECT_THAT(equal.gradient, Each(0));
}

TEST_P(BatchLossesTest, LargeScoresDoNotOverflowAndNanStays) {
  Result result =
      Compute("pairwise_logistic {}",
              {.size = 3, .outputs = {-1e30, 1e30, 300}, .labels = {1, 0, 1}});
  EXPECT_FLOAT_EQ(result.losses[0], 2e30f);
  EXPECT_THAT(result.gradient, ElementsAre(testing::FloatEq(-1.0f / 3),
                                           testing::FloatEq(2.0f / 3),
                                           testing::FloatEq(-1.0f / 3)));
  result = Compute("in_batch_softmax {}",
                   {.size = 2, .outputs = {100, 100, 100, -100}});
  EXPECT_THAT(result.losses, ElementsAre(0, 20000));
  result = Compute("in_batch_softmax {}",
                   {.size = 2, .outputs = {1, 1, std::nan(""), 1}});
  EXPECT_TRUE(std::isnan(result.losses[1]));
  result = Compute("pairwise_logistic {}",
                   {.size = 2, .outputs = {1, std::nan("")}, .labels = {1, 0}});
  EXPECT_TRUE(std::isnan(result.losses[0]));
}

INSTANTIATE_TEST_SUITE_P(Devices, BatchLossesTest, DevicesUnderTest(),
                         DeviceName);

TEST(BatchLossSpecTest, NeedsTheRightOutputs) {
  const auto is_invalid = [](const char* message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(ResolveLoss(Parse("pairwise_logistic {}"), 2),
              is_invalid("needs one output"));
  EXPECT_THAT(ResolveLoss(Parse("in_batch_softmax { temperature: 1 }"), 3),
              is_invalid("[2, width]"));
  EXPECT_THAT(ResolveLoss(Parse("in_batch_softmax { temperature: 0 }"), 4),
              is_invalid("temperature"));
  EXPECT_THAT(ResolveLoss(Parse("pairwise_logistic { group: '' }"), 1),
              is_invalid("loss.pairwise_logistic.group"));
  const job::Loss softmax = Parse("in_batch_softmax {}");
  EXPECT_OK(CheckOutputShape(softmax, {2, 5}));
  EXPECT_THAT(CheckOutputShape(softmax, {10}), is_invalid("[10], not [2"));
  EXPECT_THAT(CheckOutputShape(softmax, {3, 5}), is_invalid("[3, 5], not [2"));
}

}  // namespace
}  // namespace parasol
