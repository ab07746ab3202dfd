// A real Prometheus server scrapes a real cluster.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

namespace fs = std::filesystem;

constexpr char kPrometheus[] = "/usr/bin/prometheus";
constexpr char kPromtool[] = "/usr/bin/promtool";

// The body of GET http://127.0.0.1:<port><path>; empty when that fails.
std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string response;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
      0) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
    char buffer[65536];
    ssize_t n = write(fd, request.data(), request.size());
    while (n > 0 && (n = read(fd, buffer, sizeof(buffer))) > 0) {
      response.append(buffer, n);
    }
  }
  close(fd);
  const size_t body = response.find("\r\n\r\n");
  return body == std::string::npos ? "" : response.substr(body + 4);
}

// The series that a PromQL query gives: its "result" array.
nlohmann::json Query(int port, const std::string& query) {
  const auto answer = nlohmann::json::parse(
      HttpGet(port, absl::StrCat("/api/v1/query?query=", query)), nullptr,
      /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("data")) {
    return nlohmann::json::array();
  }
  return answer["data"]["result"];
}

int PortOf(const std::string& address) {
  return atoi(address.substr(address.rfind(':') + 1).c_str());
}

class PrometheusTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kPrometheus) || !fs::exists(kPromtool)) {
      GTEST_SKIP() << "no Prometheus here: apt-get install prometheus";
    }
    LaunchedCluster::Options options;
    options.num_ps = 1;
    options.num_workers = 1;
    options.overrides = {"end.steps=1000000", "checkpoint.every_steps=200"};
    ASSERT_OK_AND_ASSIGN(cluster_, LaunchedCluster::Start(options));
    ASSERT_OK(cluster_->AwaitStep(300));
    // The evaluator may come later than the workers' first steps.
    ASSERT_OK(WaitUntil("chief, ps, worker and evaluator", [&] {
      FindTargets();
      return targets_.size() == 4;
    }));
  }

  // Adds the roles that the chief knows, with their metrics' addresses.
  void FindTargets() {
    const absl::StatusOr<wire::JobStatus> status = cluster_->Status();
    if (!status.ok()) return;
    for (const wire::TaskStatus& task : status->task()) {
      if (task.metrics_address().empty()) continue;
      targets_[task.task().role()] = task.metrics_address();
    }
  }

  // Scrapes every target each second into a fresh database.
  void StartPrometheus() {
    const fs::path directory = fs::path(getenv("TEST_TMPDIR")) / "prometheus";
    fs::create_directories(directory);
    const fs::path config = directory / "prometheus.yml";
    std::vector<std::string> quoted;
    for (const auto& [role, address] : targets_) {
      quoted.push_back(absl::StrCat("'", address, "'"));
    }
    std::ofstream(config) << "global: {scrape_interval: 1s}\n"
                          << "scrape_configs:\n- job_name: parasol\n"
                          << "  static_configs: [{targets: ["
                          << absl::StrJoin(quoted, ", ") << "]}]\n";
    ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(1));
    port_ = ports[0];
    SubprocessOptions server;
    server.argv = {
        kPrometheus, absl::StrCat("--config.file=", config.string()),
        absl::StrCat("--storage.tsdb.path=", (directory / "data").string()),
        absl::StrCat("--web.listen-address=127.0.0.1:", port_)};
    server.standard_output = OutputTo::File(directory / "log");
    server.standard_error = OutputTo::File(directory / "log");
    ASSERT_OK_AND_ASSIGN(prometheus_, Subprocess::Start(server));
  }

  std::unique_ptr<LaunchedCluster> cluster_;
  std::map<std::string, std::string> targets_;
  int port_ = 0;
  std::unique_ptr<Subprocess> prometheus_;
};

TEST_F(PrometheusTest, EveryRoleIsScraped) {
  // chief, ps, worker and evaluator.
  ASSERT_THAT(targets_, SizeIs(4));
  StartPrometheus();
  ASSERT_OK(WaitUntil("four targets up",
                      [&] { return Query(port_, "up==1").size() == 4; }));
  for (const std::string metric :
       {"parasol_chief_global_step>0", "parasol_ps_pushes_total>0",
        "parasol_worker_steps_total>0", "parasol_evaluator_accuracy_ratio>0"}) {
    EXPECT_OK(
        WaitUntil(metric, [&] { return Query(port_, metric).size() == 1; }));
  }
}

TEST_F(PrometheusTest, PromtoolFindsNothingToSay) {
  for (const auto& [role, address] : targets_) {
    SCOPED_TRACE(role);
    const fs::path metrics = fs::path(getenv("TEST_TMPDIR")) / role;
    std::ofstream(metrics) << HttpGet(PortOf(address), "/metrics");
    ASSERT_GT(fs::file_size(metrics), 0u);
    ASSERT_OK_AND_ASSIGN(
        const CompletedProcess check,
        RunSubprocess({.argv = {"/bin/sh", "-c",
                                absl::StrCat(kPromtool, " check metrics < ",
                                             metrics.string())}},
                      absl::Minutes(1)));
    EXPECT_EQ(check.end.code(), 0);
    EXPECT_EQ(check.standard_error, "");
  }
}

}  // namespace
}  // namespace parasol
