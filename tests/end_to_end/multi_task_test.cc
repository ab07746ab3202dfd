// The zoo's multi-task models, as launched clusters.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

double Sigmoid(double logit) { return 1 / (1 + std::exp(-logit)); }

// Users click what is of their own parity, and rather even categories. Behind a
// click, users of a high number buy, and items of a high number are bought.
// Clicks are few where purchases are likely, as people click what is cheap.
void WriteImpressions(const fs::path& path, int examples, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  std::ofstream file(path);
  file << "user,item,category,click,conversion\n";
  for (int i = 0; i < examples; ++i) {
    const int user = below(50), item = below(40);
    const double buys = (user - 25) / 8. + (item - 20) / 8.;
    const double clicks = ((user + item) % 2 == 0 ? 1.5 : -1.5) +
                          (item % 4 == 0 ? 1 : -.5) - buys / 4;
    const bool click = below(10000) < 10000 * Sigmoid(clicks);
    const bool conversion = click && below(10000) < 10000 * Sigmoid(buys);
    file << "u" << user << ",i" << item << ",c" << item % 4 << "," << click
         << "," << conversion << "\n";
  }
}

std::string ExampleJob(const std::string& name) {
  std::ifstream file(absl::StrCat("docs/examples/", name, ".textproto"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The probability of a conversion is learnt from clicks and conversions of all
// impressions: "cvr" has no loss of its own. The probabilities that the data
// are drawn with have AUCs of .85 (clicks), .84 (both) and .88 (conversions of
// clicked ones).
TEST(MultiTaskTest, EsmmLearnsConversionsOverAllImpressions) {
  const fs::path directory = fs::path(getenv("TEST_TMPDIR")) / "esmm";
  fs::create_directories(directory);
  WriteImpressions(directory / "train.csv", /*examples=*/20000, 1);
  WriteImpressions(directory / "test.csv", /*examples=*/5000, 2);
  LaunchedCluster::Options options;
  options.job = ExampleJob("ads_esmm");
  options.data_dir = directory;
  options.overrides = {"train.batch_size=128", "end.epochs=6",
                       "optimizer.lazy_adam.learning_rate=0.003"};
  ASSERT_OK_AND_ASSIGN(const auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const LaunchedCluster::Result result, cluster->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json, nullptr, false);
  ASSERT_TRUE(json["eval"].contains("cvr/auc")) << result.json;
  EXPECT_GT(double{json["eval"]["ctr/auc"]}, .82) << result.json;
  EXPECT_GT(double{json["eval"]["ctcvr/auc"]}, .79) << result.json;
  EXPECT_GT(double{json["eval"]["cvr/auc"]}, .85) << result.json;
  // The loss sums the losses of the two outputs that have a weight.
  EXPECT_NEAR(
      double{json["eval"]["loss"]},
      double{json["eval"]["ctr/loss"]} + double{json["eval"]["ctcvr/loss"]},
      1e-4)
      << result.json;
}

}  // namespace
}  // namespace parasol
