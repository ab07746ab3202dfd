// A whole cluster of real processes that `launch --hosts` starts. Its ssh is a
// script that runs the command here.

#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

// Two for each task: chief, 2 ps, 2 workers and evaluator.
constexpr int kNumPorts = 12;

// The first of kNumPorts free ports one after the other.
int BasePort() {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto ports = FreeLoopbackPorts(kNumPorts);
    if (ports.ok() && ports->back() - ports->front() == kNumPorts - 1) {
      return ports->front();
    }
  }
  ADD_FAILURE() << "no free ports";
  return 0;
}

// The command is a process of its own, which does not end with the script.
std::string WriteSsh() {
  const std::string path = absl::StrCat(getenv("TEST_TMPDIR"), "/ssh");
  std::ofstream(path) << "#!/bin/sh\n"
                         "while [ $# -gt 1 ]; do shift; done\n"
                         "sh -c \"$1\"\n"
                         "exit $?\n";
  chmod(path.c_str(), 0755);
  return path;
}

TEST(HostsTest, LostConnectionsAreReplacedAndTheJobEnds) {
  LaunchedCluster::Options options;
  options.overrides = {"end.steps=2000", "checkpoint.every_steps=500"};
  options.flags = {"--hosts=localhost", "--ssh=" + WriteSsh(),
                   absl::StrCat("--base_port=", BasePort())};
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(300));
  // The launcher's children are the connections.
  ASSERT_OK(cluster->Signal("worker/0", SIGKILL));
  ASSERT_OK(cluster->Signal("ps/1", SIGKILL));

  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());

  ASSERT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_THAT(result.progress, HasSubstr("worker/0 ended with signal 9"));
  EXPECT_THAT(result.progress, HasSubstr("ps/1 ended with signal 9"));
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_GE(json["global_step"].get<int64_t>(), 2000);
  EXPECT_GT(json["eval"]["accuracy"].get<double>(), 0.8);
}

}  // namespace
}  // namespace parasol
