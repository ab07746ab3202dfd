// The `remote_task` binary, with shell scripts for tasks.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/resource_limits.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/remote/guard_protocol.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(20);

SubprocessOptions Guarded(const std::string& script) {
  return {.argv = {absl::StrCat(getenv("TEST_SRCDIR"), "/",
                                getenv("TEST_WORKSPACE"),
                                "/deploy/remote/remote_task"),
                   "--", "/bin/sh", "-c", script},
          .input_socket = true};
}

// Reads what the process prints up to the first newline.
std::string FirstLine(const Subprocess& process) {
  std::string line;
  char c = 0;
  while (read(process.output_pipe(), &c, 1) == 1 && c != '\n') line += c;
  return line;
}

// Waits until all that have the writing end of the pipe have ended.
void AwaitEndOfOutput(const Subprocess& process) {
  char c = 0;
  while (read(process.output_pipe(), &c, 1) == 1) continue;
}

std::unique_ptr<Subprocess> Start(const std::string& script) {
  SubprocessOptions options = Guarded(script);
  options.standard_output = OutputTo::Pipe();
  absl::StatusOr<std::unique_ptr<Subprocess>> guard =
      Subprocess::Start(options);
  EXPECT_OK(guard);
  return *std::move(guard);
}

TEST(RemoteTaskTest, ExitCodeAndOutputsAreTheTasks) {
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess run,
      RunSubprocess(Guarded("echo out; echo err >&2; exit 138"), kLimit));
  EXPECT_EQ(run.end.code(), 138);
  EXPECT_EQ(run.standard_output, "out\n");
  EXPECT_EQ(run.standard_error, "err\n");
}

TEST(RemoteTaskTest, TheTaskHasItsPlace) {
  SubprocessOptions options = Guarded("echo $TF_CONFIG");
  options.argv.insert(options.argv.begin() + 1, "--tf_config={\"x\": 1}");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(run.standard_output, "{\"x\": 1}\n");
}

// The token goes from the launcher to the task, and lies in no command line.
TEST(RemoteTaskTest, TheTaskReadsTheTokenThatTheLauncherSends) {
  SubprocessOptions options =
      Guarded("cat ${1#--token_file=}; read line; exit 3");
  options.argv.push_back("sh");
  options.argv.insert(options.argv.begin() + 1, "--takes_token");
  options.input_socket = true;
  options.standard_output = OutputTo::Pipe();
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> guard,
                       Subprocess::Start(options));
  EXPECT_TRUE(guard->WriteInput("the token\n"));
  EXPECT_TRUE(guard->WriteInput(kBeat));
  EXPECT_EQ(FirstLine(*guard), "the token");
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, guard->Wait(kLimit));
  EXPECT_EQ(end.code(), 3);
}

TEST(RemoteTaskTest, ALauncherThatSendsNoTokenStartsNothing) {
  SubprocessOptions options = Guarded("echo started");
  options.argv.insert(options.argv.begin() + 1, "--takes_token");
  options.input_socket = false;
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_EQ(run.standard_output, "");
  EXPECT_THAT(run.standard_error, HasSubstr("--takes_token"));
}

TEST(RemoteTaskTest, TheTaskMayOpenWhatTheSystemAllows) {
  SubprocessOptions options = Guarded("ulimit -Sn");
  const std::string low = "ulimit -Sn 64; exec \"$@\"";
  options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", low, "sh"});
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(
      run.standard_output,
      absl::StrCat(std::min<int64_t>(limit.rlim_max, kMostDescriptors), "\n"));
}

TEST(RemoteTaskTest, ASignalIsToldAsAShellDoes) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(Guarded("kill -9 $$"), kLimit));
  EXPECT_EQ(run.end.exit_code, 137);
}

TEST(RemoteTaskTest, TheTaskDoesNotReadTheLaunchersBytes) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(Guarded("cat; exit 3"), kLimit));
  EXPECT_EQ(run.end.code(), 3);
}

TEST(RemoteTaskTest, ARequestToEndIsOneSigterm) {
  const std::unique_ptr<Subprocess> guard = Start(
      "trap 'echo drained; exit 143' TERM; echo ready; "
      "while :; do sleep 0.02; done");
  ASSERT_EQ(FirstLine(*guard), "ready");
  EXPECT_TRUE(guard->WriteInput(kTerminate));
  EXPECT_EQ(FirstLine(*guard), "drained");
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, guard->Wait(kLimit));
  EXPECT_EQ(end.code(), 143);
}

TEST(RemoteTaskTest, ASigtermOfTheHostIsHandedOn) {
  const std::unique_ptr<Subprocess> guard =
      Start("trap 'exit 143' TERM; echo ready; while :; do sleep 0.02; done");
  ASSERT_EQ(FirstLine(*guard), "ready");
  guard->Terminate();
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, guard->Wait(kLimit));
  EXPECT_EQ(end.exit_code, 143);
}

// The task, and what it has started, ignore every signal that they can.
constexpr char kStubborn[] =
    "trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep 600) & echo $$; wait";

TEST(RemoteTaskTest, TheEndOfInputKillsTheTaskAndWhatItHasStarted) {
  // Ends the input, but not the guard, which is the shell's background job.
  SubprocessOptions options = Guarded(kStubborn);
  std::string command = "exec 3<&0; \"$@\" <&3 & wait";
  options.argv.insert(options.argv.begin(), {"/bin/sh", "-c", command, "sh"});
  options.standard_output = OutputTo::Pipe();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(options));
  ASSERT_NE(FirstLine(*launcher), "");
  const int output = dup(launcher->output_pipe());
  launcher.reset();
  char c = 0;
  while (read(output, &c, 1) == 1) continue;
  close(output);
}

TEST(RemoteTaskTest, TheTaskDiesWithItsGuard) {
  const std::unique_ptr<Subprocess> guard =
      Start("trap '' TERM HUP INT; echo $$; while :; do sleep 0.02; done");
  ASSERT_NE(FirstLine(*guard), "");
  guard->Kill();
  AwaitEndOfOutput(*guard);
}

TEST(RemoteTaskTest, ABinaryThatIsNotThereIsNamed) {
  SubprocessOptions options = Guarded("");
  options.argv.resize(2);
  options.argv.push_back("/none/worker");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("remote_task: /none/worker"));
}

TEST(RemoteTaskTest, NoCommandIsAnError) {
  SubprocessOptions options = Guarded("");
  options.argv.resize(1);
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("no command"));
}

}  // namespace
}  // namespace parasol
