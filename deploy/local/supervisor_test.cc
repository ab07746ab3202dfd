#include "deploy/local/supervisor.h"

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
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
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  supervisor.Stop(absl::Seconds(60), [] { return false; });
  std::ifstream heard(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(heard), {}),
            absl::StrCat(kBeat, kBeat, kBeat, kTerminate));
}

// A ps that takes no notice of SIGTERM, and writes its process id to `path`.
TaskPlan Stubborn(const std::string& path) {
  TaskPlan plan;
  plan.role = "ps";
  plan.name = "ps/1";
  plan.argv = {"/bin/sh", "-c",
               absl::StrCat("trap '' TERM; echo $$ > ", path, ".new; mv ", path,
                            ".new ", path, "; while :; do sleep 1; done")};
  plan.log_file = path + ".log";
  return plan;
}

class StubbornTaskTest : public testing::Test {
 protected:
  StubbornTaskTest()
      : supervisor_(
            {Stubborn(path_)}, RestartLimits(),
            [this](const std::string& line) { told_.push_back(line); },
            clock_) {
    std::filesystem::remove(path_);
    EXPECT_OK(supervisor_.Start());
    while (!std::filesystem::exists(path_)) supervisor_.Poll();
  }

  bool IsGone() const {
    std::ifstream file(path_);
    pid_t process = 0;
    EXPECT_TRUE(file >> process);
    return kill(process, 0) != 0;
  }

  const std::string path_ = testing::TempDir() + "/stubborn";
  std::vector<std::string> told_;
  SimulatedClock clock_;
  Supervisor supervisor_;
};

TEST_F(StubbornTaskTest, IsNamedOnceAndKilledAtTheLimit) {
  const absl::Time start = clock_.Now();
  supervisor_.Stop(absl::Seconds(60), [this] {
    clock_.Advance(absl::Seconds(10));
    return false;
  });
  EXPECT_GE(clock_.Now() - start, absl::Seconds(60));
  EXPECT_LE(clock_.Now() - start, absl::Seconds(80));
  ASSERT_EQ(told_.size(), 1);
  EXPECT_THAT(told_[0],
              AllOf(StartsWith("waiting for ps/1 (process "),
                    HasSubstr("), which still runs; it is killed in ")));
  EXPECT_TRUE(IsGone());
}

TEST_F(StubbornTaskTest, IsKilledAtOnceIfThatIsWanted) {
  supervisor_.Stop(absl::Seconds(60),
                   [asked = 0]() mutable { return ++asked > 3; });
  EXPECT_EQ(told_.size(), 0);
  EXPECT_TRUE(IsGone());
}

}  // namespace
}  // namespace parasol
