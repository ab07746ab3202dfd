// A program as real processes, which are killed and stopped.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr absl::Duration kLimit = absl::Minutes(2);

class ProcessesTest : public testing::Test {
 protected:
  static constexpr int kWorkers = 2;

  ProcessesTest()
      : root_(absl::StrCat(
            testing::TempDir(), "/processes_",
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ + "/hold") << "here";
    const std::vector<int> ports = *FreeLoopbackPorts(kWorkers);
    for (const int port : ports) {
      addresses_.push_back(absl::StrCat("\"127.0.0.1:", port, "\""));
    }
    processes_.resize(kWorkers);
  }

  std::string LogOf(int worker) const {
    return absl::StrCat(root_, "/", worker, ".log");
  }
  std::string TextOf(int worker) const {
    std::ifstream file(LogOf(worker));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  void Start(int worker, const std::vector<std::string>& flags = {}) {
    SubprocessOptions options;
    options.argv = {"loop/peers/testing/small_program",
                    absl::StrCat("--checkpoint_dir=", root_, "/checkpoints"),
                    "--iterations=10",
                    absl::StrCat("--hold_file=", root_, "/hold")};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.environment["TF_CONFIG"] = absl::StrCat(
        "{\"cluster\": {\"worker\": [", absl::StrJoin(addresses_, ", "),
        "]}, \"task\": {\"type\": \"worker\", \"index\": ", worker, "}}");
    options.standard_output = OutputTo::File(LogOf(worker));
    options.standard_error = OutputTo::File(LogOf(worker));
    auto started = Subprocess::Start(options);
    ASSERT_OK(started);
    processes_[worker] = *std::move(started);
  }

  // Polls a fact of a process's log.
  void AwaitText(int worker, const std::string& text) {
    const absl::Time deadline = Clock::Real().Now() + kLimit;
    while (!absl::StrContains(TextOf(worker), text)) {
      ASSERT_LT(Clock::Real().Now(), deadline) << text << TextOf(worker);
      Clock::Real().Pause(absl::Milliseconds(20));
    }
  }

  int CodeOf(int worker) {
    const auto end = processes_[worker]->Wait(kLimit);
    EXPECT_OK(end);
    return end.ok() ? end->code() : -1;
  }

  // Returns the line with the values at the end.
  std::string ValuesOf(int worker) const {
    const std::string text = TextOf(worker);
    const size_t at = text.rfind("values ");
    return at == std::string::npos ? "" : text.substr(at);
  }

  // Returns the values of a program that nothing happened to.
  std::string Undisturbed() {
    for (int worker = 0; worker < kWorkers; ++worker) {
      Start(worker, {absl::StrCat("--checkpoint_dir=", root_, "/undisturbed")});
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      EXPECT_EQ(CodeOf(worker), 0) << TextOf(worker);
    }
    return ValuesOf(0);
  }

  const std::string root_;
  std::vector<std::string> addresses_;
  std::vector<std::unique_ptr<Subprocess>> processes_;
};

TEST_F(ProcessesTest, KilledOnesGoOnWithTheSameBits) {
  const std::string undisturbed = Undisturbed();
  ASSERT_THAT(undisturbed, Not(IsEmpty()));
  for (int killed = 0; killed < kWorkers; ++killed) {
    SCOPED_TRACE(absl::StrCat("worker/", killed));
    fs::remove_all(root_ + "/checkpoints");
    const int other = 1 - killed;
    fs::remove(LogOf(0));
    fs::remove(LogOf(1));
    Start(killed, {"--hold_at=6"});
    Start(other);
    AwaitText(killed, "step 6\n");
    processes_[killed]->Kill();
    CodeOf(killed);
    Start(killed);
    for (int worker = 0; worker < kWorkers; ++worker) {
      EXPECT_EQ(CodeOf(worker), 0) << TextOf(worker);
      EXPECT_EQ(ValuesOf(worker), undisturbed) << TextOf(worker);
    }
    // In its own memory, not from the checkpoint of step 4.
    EXPECT_THAT(TextOf(other), HasSubstr("starting anew"));
    EXPECT_THAT(TextOf(other), HasSubstr("began at 6"));
  }
}

TEST_F(ProcessesTest, OneThatStandsStillComesBack) {
  const std::string undisturbed = Undisturbed();
  fs::remove(LogOf(0));
  fs::remove(LogOf(1));
  Start(0);
  Start(1, {"--hold_at=6"});
  AwaitText(1, "step 6\n");
  processes_[1]->Signal(SIGSTOP);
  AwaitText(0, "worker/1: ");
  AwaitText(0, "waiting for all 2 workers");
  fs::remove(root_ + "/hold");
  processes_[1]->Signal(SIGCONT);
  for (int worker = 0; worker < kWorkers; ++worker) {
    EXPECT_EQ(CodeOf(worker), 0) << TextOf(worker);
    EXPECT_EQ(ValuesOf(worker), undisturbed) << TextOf(worker);
  }
}

TEST_F(ProcessesTest, SigtermToOneEndsAllWithACheckpoint) {
  Start(0, {"--iterations=1000000000"});
  Start(1, {"--iterations=1000000000"});
  AwaitText(1, "step 20\n");
  processes_[1]->Terminate();
  for (int worker = 0; worker < kWorkers; ++worker) {
    EXPECT_EQ(CodeOf(worker), 143) << TextOf(worker).substr(0, 2000);
    EXPECT_THAT(TextOf(worker), HasSubstr("stopped at step "));
  }
}

}  // namespace
}  // namespace parasol
