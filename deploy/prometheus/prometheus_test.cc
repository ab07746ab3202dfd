#include <unistd.h>

#include <string>

#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "gtest/gtest.h"

// The scrape configuration and the alerts, as promtool (Debian's package
// prometheus) sees them.
namespace parasol {
namespace {

constexpr char kPromtool[] = "/usr/bin/promtool";

CompletedProcess Check(const std::string& what, const std::string& file) {
  absl::StatusOr<CompletedProcess> completed = RunSubprocess(
      {.argv = {kPromtool, "check", what, "deploy/prometheus/" + file}},
      absl::Seconds(30));
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
  const CompletedProcess completed = Check("config", "prometheus.yml");
  EXPECT_EQ(completed.end.code(), 0)
      << completed.standard_output << completed.standard_error;
}

TEST_F(PrometheusTest, AlertsAreValid) {
  const CompletedProcess completed = Check("rules", "parasol.rules.yml");
  EXPECT_EQ(completed.end.code(), 0)
      << completed.standard_output << completed.standard_error;
}

}  // namespace
}  // namespace parasol
