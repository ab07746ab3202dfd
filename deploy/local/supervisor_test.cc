#include "deploy/local/supervisor.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "deploy/local/restart_policy.h"
#include "deploy/local/task_plan.h"
#include "deploy/remote/guard_protocol.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

// A task on another host, whose connection writes the first `bytes` bytes that
// it hears to a file and then ends.
TaskPlan Listener(const std::string& path, int bytes) {
  TaskPlan plan;
  plan.role = "worker";
  plan.name = "worker/0";
  plan.argv = {"/bin/sh", "-c",
               absl::StrCat("exec head -c ", bytes, " > ", path)};
  plan.log_file = path + ".log";
  plan.is_remote = true;
  return plan;
}

TEST(SupervisorTest, ATaskOnAnotherHostHearsBeatsAndThenTheRequestToEnd) {
  const std::string path = testing::TempDir() + "/heard";
  SimulatedClock clock;
  Supervisor supervisor(
      {Listener(path, 4)}, RestartLimits(), [](const std::string&) {}, clock);
  ASSERT_OK(supervisor.Start());
  for (int beat = 0; beat < 3; ++beat) {
    // However often it is polled, there is one beat in a period.
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(supervisor.Poll(), Supervisor::State::kRunning);
    }
    clock.Advance(kBeatPeriod);
  }
  // Returns as soon as the task has ended.
  supervisor.Stop(absl::Seconds(60));
  std::ifstream heard(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(heard), {}),
            absl::StrCat(kBeat, kBeat, kBeat, kTerminate));
}

}  // namespace
}  // namespace parasol
