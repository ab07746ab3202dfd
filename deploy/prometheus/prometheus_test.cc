#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"
#include "re2/re2.h"

// The scrape configuration and the alerts, as promtool (Debian's package
// prometheus) sees them.
namespace parasol {
namespace {

constexpr char kPromtool[] = "/usr/bin/promtool";

CompletedProcess RunPromtool(const std::string& command,
                             const std::string& what, const std::string& path) {
  absl::StatusOr<CompletedProcess> completed = RunSubprocess(
      {.argv = {kPromtool, command, what, path}}, absl::Seconds(30));
  EXPECT_OK(completed);
  return completed.ok() ? *std::move(completed) : CompletedProcess();
}

class PrometheusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kPromtool, X_OK) != 0) {
      GTEST_SKIP() << kPromtool << " is not here: run deploy/setup";
    }
  }
};

TEST_F(PrometheusTest, ConfigurationIsValid) {
  // Debian's build can't look into Kubernetes.
  std::ifstream file("deploy/prometheus/prometheus.yml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  ASSERT_TRUE(RE2::Replace(&text,
                           R"(kubernetes_sd_configs:\n      - role: pod\n)",
                           "static_configs: []\n"));
  const std::string path = testing::TempDir() + "/prometheus.yml";
  std::ofstream(path) << text;
  std::filesystem::copy("deploy/prometheus/parasol.rules.yml",
                        testing::TempDir() + "/parasol.rules.yml");
  const CompletedProcess completed = RunPromtool("check", "config", path);
  EXPECT_EQ(completed.end.code(), 0)
      << completed.standard_output << completed.standard_error;
}

TEST_F(PrometheusTest, AlertsAreValid) {
  const CompletedProcess completed =
      RunPromtool("check", "rules", "deploy/prometheus/parasol.rules.yml");
  EXPECT_EQ(completed.end.code(), 0)
      << completed.standard_output << completed.standard_error;
}

TEST_F(PrometheusTest, RulesKeepJobsApart) {
  const CompletedProcess completed =
      RunPromtool("test", "rules", "deploy/prometheus/rules_test.yml");
  EXPECT_EQ(completed.end.code(), 0)
      << completed.standard_output << completed.standard_error;
}

}  // namespace
}  // namespace parasol
