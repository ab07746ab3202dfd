// Every case of the golden file: TF_CONFIG as TensorFlow, Kubeflow and people
// write it, and the line of --check_config or the words of the error.
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/cluster_spec/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

constexpr char kCases[] = "cluster/cluster_spec/testdata/tf_config_cases.jsonl";

void ExpectCaseHolds(const Json& test) {
  const std::string text = test["tf_config"].is_null()
                               ? std::string()
                               : test["tf_config"].get<std::string>();
  const auto config =
      ParseTfConfig(text, RoleNamed(test["binary"].get<std::string>()).value(),
                    StrategyNamed(test["strategy"].get<std::string>()).value());
  if (test.contains("expect")) {
    ASSERT_OK(config);
    EXPECT_EQ(CheckConfigLine(*config), test["expect"].dump());
    return;
  }
  for (const Json& word : test["error_mentions"]) {
    EXPECT_THAT(config, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(word.get<std::string>())));
  }
}

TEST(TfConfigGoldenTest, EveryCaseHolds) {
  std::ifstream file(kCases);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json test = Json::parse(line);
    SCOPED_TRACE(test["name"]);
    ExpectCaseHolds(test);
  }
  EXPECT_EQ(cases, 47);
}

}  // namespace
}  // namespace parasol
