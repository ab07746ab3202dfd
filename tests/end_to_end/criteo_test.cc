// The example jobs of DeepFM and DLRM on a small file of Criteo's format, each
// on a local cluster.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

// Whether somebody clicks depends on the first count, on the first category,
// and on whether the second and the third one are alike: a linear model does
// not see the latter. One field in ten is empty.
void WriteCriteoFile(const std::string& path, int examples) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  std::ofstream file(path);
  for (int i = 0; i < examples; ++i) {
    const int count = below(100);
    const int categories[] = {below(8), below(4), below(4)};
    const double logit = (count > 50 ? 1 : -1) +
                         (categories[0] % 2 == 0 ? 1 : -1) +
                         (categories[1] == categories[2] ? 3 : -1);
    const bool clicks = below(1000) < 1000 / (1 + std::exp(-logit));
    file << (clicks ? 1 : 0) << '\t' << count;
    for (int field = 2; field <= 13; ++field) {
      file << '\t';
      if (below(10) > 0) file << below(30) - 2;
    }
    for (int field = 1; field <= 26; ++field) {
      const int category = field <= 3 ? categories[field - 1] : below(50);
      file << '\t';
      if (field <= 3 || below(10) > 0) {
        file << absl::StrCat(
            absl::Hex(0x1000 * field + category, absl::kZeroPad8));
      }
    }
    file << '\n';
  }
}

std::string ExampleJob(const std::string& name) {
  std::ifstream file(absl::StrCat("docs/examples/", name, ".textproto"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Trains the example `name` with narrower layers, and for few `epochs`: a model
// that knew the 9,000 examples by heart would be worse on new ones. All that is
// to be known of the clicks gives an AUC of .87; without the pair, .71.
void ExpectLearns(const std::string& name, int epochs,
                  const std::vector<std::string>& narrower) {
  const fs::path directory = fs::path(getenv("TEST_TMPDIR")) / name;
  fs::create_directories(directory);
  WriteCriteoFile(directory / "train.txt", /*examples=*/10000);
  LaunchedCluster::Options options;
  options.job = ExampleJob(name);
  options.data_dir = directory;
  options.overrides = {"train.batch_size=128",
                       absl::StrCat("end.epochs=", epochs),
                       "optimizer.lazy_adam.learning_rate=0.003"};
  options.overrides.insert(options.overrides.end(), narrower.begin(),
                           narrower.end());
  ASSERT_OK_AND_ASSIGN(const auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const LaunchedCluster::Result result, cluster->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json, nullptr, false);
  ASSERT_TRUE(json["eval"].contains("auc")) << result.json;
  EXPECT_GT(double{json["eval"]["auc"]}, .75) << result.json;
}

TEST(CriteoTest, DeepFmLearnsFromItsFormat) {
  ExpectLearns(
      "criteo_deepfm", /*epochs=*/4,
      {"model.layer[4].dense.units=64", "model.layer[5].dense.units=64",
       "model.layer[6].dense.units=64"});
}

TEST(CriteoTest, DlrmLearnsFromItsFormat) {
  ExpectLearns(
      "criteo_dlrm", /*epochs=*/2,
      {"model.layer[0].dense.units=64", "model.layer[1].dense.units=32",
       "model.layer[8].dense.units=64", "model.layer[9].dense.units=32"});
}

}  // namespace
}  // namespace parasol
