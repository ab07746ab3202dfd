// Layers beside PyTorch's, Keras's and TensorFlow Recommenders'.

#include <cmath>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/layer/kinds/layer_kinds.h"
#include "ml/layer/testing/layer_fixture.h"
#include "nlohmann/json.hpp"
#include "proto/job.pb.h"

namespace parasol {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

// A case's layer in a file of testdata, which testdata/make_pytorch_cases.py
// describes.
std::vector<LayerInput> InputsOf(const Json& c) {
  std::vector<LayerInput> inputs;
  for (const Json& input : c["inputs"]) {
    inputs.push_back({.shape = input["shape"].get<Shape>()});
  }
  if (c.contains("rows")) {
    inputs.push_back({.kind = LayerInput::Kind::kIds,
                      .ids_per_example = c["ids_per_example"].get<int64_t>()});
  }
  return inputs;
}

LayerValues ValuesOf(const Json& c) {
  LayerValues values = {.examples = c["examples"].get<int64_t>()};
  for (const Json& input : c["inputs"]) {
    values.inputs.push_back(input["values"].get<Numbers>());
  }
  values.variables = c["variables"].get<std::vector<Numbers>>();
  if (!c.contains("rows")) return values;
  values.inputs.push_back({});
  values.width = c["width"].get<int64_t>();
  values.rows = c["rows"].get<Numbers>();
  values.offsets = c["offsets"].get<std::vector<int32_t>>();
  values.positions = c["positions"].get<std::vector<int32_t>>();
  values.weights = c["weights"].get<Numbers>();
  return values;
}

// The cases are float64; sums here are of at most some dozens of float32.
void ExpectNear(absl::Span<const float> got, const Numbers& want,
                const std::string& what) {
  constexpr double kTolerance = 5e-6;
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], kTolerance * (1 + std::abs(want[i])))
        << what << "[" << i << "]";
  }
}

class LayerReferenceTest : public LayerTest {
 protected:
  // Compares with each case of a file in testdata; returns their number.
  int CompareAll(const std::string& file) {
    std::ifstream lines("ml/layer/kinds/testdata/" + file);
    int cases = 0;
    for (std::string line; std::getline(lines, line); ++cases) {
      const Json c = Json::parse(line);
      SCOPED_TRACE(c["name"].get<std::string>());
      ExpectAgreement(c);
    }
    return cases;
  }

 private:
  void ExpectAgreement(const Json& c) {
    job::Layer spec;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        c["layer"].get<std::string>(), &spec));
    LayerValues values = ValuesOf(c);
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<const Layer> layer,
                         MakeLayer(spec, InputsOf(c), values.width));

    const LayerResults results =
        RunLayer(*layer, values, c["dy"].get<Numbers>());
    ExpectNear(results.y, c["y"].get<Numbers>(), "y");
    for (size_t i = 0; i < c["dx"].size(); ++i) {
      ExpectNear(results.dx[i], c["dx"][i].get<Numbers>(), "dx");
    }
    for (size_t i = 0; i < c["gradients"].size(); ++i) {
      ExpectNear(results.gradients[i], c["gradients"][i].get<Numbers>(),
                 layer->variables()[i].name);
    }
    ExpectNear(results.row_gradients, c.value("row_gradients", Numbers()),
               "row gradients");
    values.training = false;
    const char* const y = c.contains("y_evaluation") ? "y_evaluation" : "y";
    ExpectNear(RunLayer(*layer, values, {}).y, c[y].get<Numbers>(), y);
  }
};

TEST_P(LayerReferenceTest, LayersAndTheirGradientsAreThoseOfPyTorch) {
  EXPECT_EQ(CompareAll("pytorch_cases.jsonl"), 44);
}

TEST_P(LayerReferenceTest, LayersAndTheirGradientsAreThoseOfKeras) {
  EXPECT_EQ(CompareAll("keras_cases.jsonl"), 58);
}

INSTANTIATE_TEST_SUITE_P(Devices, LayerReferenceTest, DevicesUnderTest(),
                         DeviceName);

}  // namespace
}  // namespace parasol
