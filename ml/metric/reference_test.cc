// Metrics beside scikit-learn's, Keras's and torchmetrics':
// testdata/make_cases.py.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ml/metric/metrics.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::nlohmann::json;

Metrics Make(const std::string& text, int64_t outputs) {
  job::Model model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  const absl::StatusOr<LossSpec> loss = ResolveLoss(model.loss(), outputs);
  EXPECT_OK(loss);
  absl::StatusOr<Metrics> metrics =
      Metrics::Create(model, std::vector<OutputSpec>{{.loss = *loss}});
  EXPECT_OK(metrics);
  return *std::move(metrics);
}

// The examples of a case, each with `width` outputs.
struct Examples {
  std::vector<float> labels;
  std::vector<float> outputs;
  std::vector<float> weights;
  std::vector<uint64_t> keys;
  size_t width = 1;

  explicit Examples(const json& golden)
      : labels(golden["labels"].get<std::vector<float>>()),
        outputs(golden["outputs"].get<std::vector<float>>()),
        weights(golden["weights"].get<std::vector<float>>()),
        keys(golden["keys"].get<std::vector<uint64_t>>()),
        width(outputs.size() / labels.size()) {}

  // Adds the examples from `begin` to `end` as one batch.
  void AddTo(Metrics& metrics, size_t begin, size_t end) const {
    const auto part = [begin, end](const auto& all) {
      return std::vector(all.begin() + begin, all.begin() + end);
    };
    Batch batch;
    batch.size = end - begin;
    batch.labels = part(labels);
    batch.weights = part(weights);
    if (!keys.empty()) batch.columns = {{.keys = part(keys)}};
    metrics.Add(batch, absl::MakeSpan(outputs).subspan(begin * width,
                                                       batch.size * width));
  }
};

// Predictions are computed in float64 from float32's logits.
void ExpectResults(const Metrics& metrics, const json& golden) {
  const json& want = golden["results"];
  const double tolerance = golden["tolerance"];
  const MetricResults results = metrics.Results();
  ASSERT_EQ(results.size(), want.size());
  for (const auto& [name, value] : results) {
    const double exact = want.at(name);
    EXPECT_NEAR(value, exact, tolerance * (1 + std::abs(exact))) << name;
  }
}

TEST(MetricsReferenceTest, AreThoseOfScikitLearnAndKeras) {
  std::ifstream file("ml/metric/testdata/cases.jsonl");
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const json golden = json::parse(line);
    SCOPED_TRACE(golden["name"].get<std::string>());
    const Examples examples(golden);
    const auto size = examples.labels.size();

    Metrics whole = Make(golden["model"], examples.width);
    Metrics first = whole;
    Metrics rest = whole;
    examples.AddTo(whole, 0, size);
    ExpectResults(whole, golden);
    examples.AddTo(rest, size / 3, size);
    examples.AddTo(first, 0, size / 3);
    rest.Merge(first);
    ExpectResults(rest, golden);
  }
  EXPECT_EQ(cases, 17);
}

}  // namespace
}  // namespace parasol
