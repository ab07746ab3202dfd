#include "ml/loss/loss.h"

#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/device/testing/device_fixture.h"
#include "ml/loss/loss_kinds.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

job::Loss Parse(const std::string& text) {
  job::Loss loss;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &loss));
  return loss;
}

class LossTest : public DeviceTest {
 protected:
  struct Examples {
    std::vector<float> outputs;
    std::vector<float> labels;
    std::vector<float> weights = {};
    int64_t size = 1;
  };
  struct Result {
    std::vector<float> losses;
    std::vector<float> gradient;

    double mean() const {
      double sum = 0;
      for (const float loss : losses) sum += loss;
      return sum / losses.size();
    }
  };

  Result Compute(const std::string& textproto, const Examples& examples) {
    const size_t outputs = examples.outputs.size();
    job::Loss job_loss = Parse(textproto);
    FillDefaults(job_loss);
    const auto spec = ResolveLoss(job_loss, outputs / examples.size);
    EXPECT_OK(spec.status());
    const Loss loss(*spec);
    float* const losses = Put(std::vector<float>(examples.size));
    float* const gradient = Put(std::vector<float>(outputs));
    EXPECT_OK(loss.Compute(
        device(),
        {.outputs = Put(examples.outputs),
         .labels = Put(examples.labels),
         .weights = examples.weights.empty() ? nullptr : Put(examples.weights),
         .examples = examples.size},
        losses, gradient));
    return {Get(losses, examples.size), Get(gradient, outputs)};
  }

  // Compares with each case of a file in testdata; returns their number.
  int CompareAll(const std::string& name) {
    std::ifstream file("ml/loss/testdata/" + name);
    int cases = 0;
    for (std::string line; std::getline(file, line); ++cases) {
      SCOPED_TRACE(absl::StrCat(name, ":", cases + 1));
      Compare(json::parse(line));
    }
    return cases;
  }

 private:
  void Compare(const json& golden) {
    Examples examples;
    examples.size = golden["outputs"].size();
    for (const json& row : golden["outputs"]) {
      for (const json& value : row) examples.outputs.push_back(value);
    }
    for (const json& row : golden["labels"]) {
      for (const json& value : row) examples.labels.push_back(value);
    }
    examples.weights = golden["weights"].get<std::vector<float>>();

    const Result result = Compute(golden["loss"], examples);
    for (size_t i = 0; i < result.losses.size(); ++i) {
      const double want = golden["losses"][i];
      EXPECT_NEAR(result.losses[i], want, 1e-6 * (1 + std::fabs(want)));
    }
    const size_t outputs = golden["outputs"][0].size();
    for (size_t i = 0; i < result.gradient.size(); ++i) {
      const double want = golden["gradient"][i / outputs][i % outputs];
      EXPECT_NEAR(result.gradient[i], want, 1e-6 * (1 + std::fabs(want)));
    }
  }
};

// The literals of Keras's own tests.
TEST_P(LossTest, MeansAreThoseOfKeras) {
  Examples squared{.outputs = {4, 8, 12, 8, 1, 3},
                   .labels = {1, 9, 2, -5, -2, 6},
                   .size = 2};
  EXPECT_NEAR(Compute("mean_squared_error {}", squared).mean(), 49.5, 1e-4);
  squared.weights = {1.2, 3.4};
  EXPECT_NEAR(Compute("mean_squared_error {}", squared).mean(), 767.8 / 6,
              1e-4);

  const Examples binary{.outputs = {100, -100, 100, 100, 100, -100},
                        .labels = {1, 0, 1, 0, 1, 1},
                        .size = 2};
  EXPECT_NEAR(Compute("binary_crossentropy {}", binary).mean(), 33.333, 1e-3);
  const Examples smoothed{.outputs = {100, -100, -100}, .labels = {1, 0, 1}};
  EXPECT_NEAR(
      Compute("binary_crossentropy { label_smoothing: .1 }", smoothed).mean(),
      35.0, 1e-4);

  Examples sparse{
      .outputs = {8, 1, 1, 0, 9, 1, 2, 3, 5}, .labels = {0, 1, 2}, .size = 3};
  EXPECT_NEAR(Compute("sparse_categorical_crossentropy {}", sparse).mean(),
              .0573, 1e-4);
  sparse.weights = {1.2, 3.4, 5.6};
  EXPECT_NEAR(Compute("sparse_categorical_crossentropy {}", sparse).mean(),
              .31829, 1e-5);
}

// float32's outputs, labels and weights; a sum of few products of them.
TEST_P(LossTest, LossesAndGradientsAreThoseOfPyTorch) {
  EXPECT_EQ(CompareAll("pytorch_cases.jsonl"), 27);
}

TEST_P(LossTest, LossesAndGradientsAreThoseOfKeras) {
  EXPECT_EQ(CompareAll("keras_cases.jsonl"), 66);
  EXPECT_EQ(CompareAll("tensorflow_cases.jsonl"), 5);
}

TEST_P(LossTest, OfLogitsOfAThousandNothingOverflows) {
  for (const char* loss :
       {"binary_crossentropy { label_smoothing: .1 }",
        "categorical_crossentropy { label_smoothing: .1 }"}) {
    SCOPED_TRACE(loss);
    const Result result = Compute(loss, {.outputs = {1000, -1000, -1000, 1000},
                                         .labels = {1, 0, 1, 0},
                                         .size = 2});
    for (const float value : result.losses) EXPECT_TRUE(std::isfinite(value));
    for (const float value : result.gradient) EXPECT_TRUE(std::isfinite(value));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LossTest, DevicesUnderTest(), DeviceName);

TEST(LossOfAJobTest, ABadLabelIsNamed) {
  ASSERT_OK_AND_ASSIGN(
      const LossSpec spec,
      ResolveLoss(Parse("sparse_categorical_crossentropy {}"), 4));
  Batch batch;
  batch.size = 1;
  batch.labels = {4};
  EXPECT_THAT(Loss(spec).CheckLabels(batch.size, batch.labels),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("label 4 of example 0")));
}

}  // namespace
}  // namespace parasol
