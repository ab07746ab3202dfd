#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/testing/launcher_fixture.h"
#include "deploy/remote/remote_command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_store.h"

// The launcher with --hosts. Its ssh is a script that runs the command here, as
// a process that outlives the script, as on another host.
namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class LauncherHostsTest : public LauncherFixture {
 protected:
  // A name that breaks what is not quoted.
  LauncherHostsTest() : LauncherFixture(" it's \"$HOME\" `x` \\") {}

  void SetUp() override {
    LauncherFixture::SetUp();
    const std::string guard = here_ + "/bin/deploy/remote/remote_task";
    fs::create_directories(fs::path(guard).parent_path());
    fs::create_symlink(DataFile("deploy/remote/remote_task"), guard);
    SetSsh("");
  }

  // Writes the ssh, which runs `before` first. $host is the host's name.
  void SetSsh(const std::string& before) {
    WriteScript(here_ + "/ssh",
                absl::StrCat("while [ $# -gt 2 ]; do shift; done\n"
                             "host=$1\n"
                             "echo \"$host\" >> \"$HERE/connections\"\n",
                             before, "\nsh -c \"$2\"\nexit $?"));
  }

  SubprocessOptions LaunchOnHosts(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"--hosts=alpha,beta",
                                 "--ssh=" + ShellQuoted(here_ + "/ssh")});
    return Launch(flags);
  }

  // A role's script that leaves the number of its process in a file and stays.
  static std::string Stays(const std::string& role) {
    return absl::StrCat("trap '' HUP INT\necho $$ > \"$HERE/.", role,
                        "\"; mv \"$HERE/.", role, "\" \"$HERE/", role,
                        ".pid\"\nexec sleep 60");
  }

  int Pid(const std::string& role) {
    int pid = 0;
    std::ifstream(here_ + "/" + role + ".pid") >> pid;
    return pid;
  }

  // Writes a checkpoint of the step, without files.
  static void WriteCheckpoint(const std::string& directory, int64_t step) {
    auto store = CheckpointStore::OpenForWriting(directory);
    ASSERT_OK(store);
    ASSERT_OK_AND_ASSIGN(const std::string working, store->Begin(step));
    durable::CheckpointManifest manifest;
    manifest.set_global_step(step);
    manifest.set_run_id("run-a");
    ASSERT_OK(store->Commit(working, manifest));
  }

  // Waits for the file, as long as the launcher runs.
  void Await(Subprocess& launcher, const std::string& file) {
    while (!fs::exists(here_ + "/" + file)) {
      ASSERT_EQ(launcher.Poll(), std::nullopt) << file;
    }
  }

  // Waits until the process is gone.
  void AwaitEnd(int pid) {
    ASSERT_GT(pid, 0);
    while (kill(pid, 0) == 0) continue;
    EXPECT_EQ(errno, ESRCH);
  }
};

TEST_F(LauncherHostsTest, TasksRunOnTheirHostsAndTheJobEndsAsEver) {
  WriteCheckpoint(here_ + "/made", 100);
  SetRole("chief",
          "echo \"$TF_CONFIG\"\n"
          "mkdir -p \"$HERE/checkpoints\"\n"
          "mv \"$HERE\"/made/ckpt-* \"$HERE/checkpoints\"\n"
          "touch \"$HERE/go\"");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      RunSubprocess(LaunchOnHosts({"--ps=2", "--base_port=7000"}), kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  const nlohmann::json result = Result(launcher);
  EXPECT_EQ(result["status"], "succeeded");
  EXPECT_EQ(result["checkpoint"], here_ + "/checkpoints/ckpt-000000000100");
  EXPECT_EQ(result["metrics"]["ps/1"], "http://beta:7001/metrics");
  EXPECT_THAT(
      Log("chief-0"),
      HasSubstr(R"({"cluster":{"chief":["alpha:7000"],)"
                R"("ps":["alpha:7002","beta:7000"],"worker":["alpha:7004"]},)"
                R"("task":{"type":"chief","index":0}})"));
  // Chief, ps/0, ps/1, worker and evaluator.
  EXPECT_EQ(Text("connections").size(),
            std::string("alpha\nalpha\nbeta\nalpha\nalpha\n").size());
}

TEST_F(LauncherHostsTest, ArgumentsArriveAsTheyAre) {
  SetRole("worker", "printf '<%s>\\n' \"$@\"");
  SetRole("chief", "printf '<%s>\\n' \"$@\"; touch \"$HERE/go\"");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      RunSubprocess(
          LaunchOnHosts({"--set=train.idx.images=a b'c\"$HOME;`x`\\*"}),
          kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(Log("worker-0"), HasSubstr("<--data_dir=" + here_ + ">"));
  EXPECT_THAT(Log("chief-0"),
              AllOf(HasSubstr("<--job=" + here_ + "/job.textproto>"),
                    HasSubstr("<--set=train.idx.images=a b'c\"$HOME;`x`\\*>")));
}

TEST_F(LauncherHostsTest, OtherHostsMayHaveTheBinariesInAnotherPlace) {
  fs::rename(here_ + "/bin", here_ + "/installed");
  WriteScript(here_ + "/installed/chief/chief", "touch \"$HERE/go\"");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      RunSubprocess(LaunchOnHosts({"--remote_dir=" + here_ + "/installed",
                                   "--data_dir=/only/there"}),
                    kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
}

TEST_F(LauncherHostsTest, ATaskThatIsKilledStartsAgainOnItsHost) {
  SetRole("ps",
          "if mkdir \"$HERE/killed\"; then kill -9 $$; fi\n"
          "touch \"$HERE/go\"");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(LaunchOnHosts({"--noevaluator"}), kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(
      launcher.standard_error,
      HasSubstr("ps/0 ended with exit code 137; starting it again (1 of 20)"));
}

TEST_F(LauncherHostsTest, AConnectionThatFailsIsToldAndTriedAgain) {
  SetSsh(
      "if mkdir \"$HERE/refused\" 2>/dev/null; then\n"
      "  echo \"ssh: connect to host $host port 22: Connection refused\" >&2\n"
      "  exit 255\n"
      "fi");
  SetRole("chief", "touch \"$HERE/go\"");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(LaunchOnHosts(), kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(launcher.standard_error,
              HasSubstr("ended with exit code 255: ssh: connect to host alpha "
                        "port 22: Connection refused; starting it again"));
}

TEST_F(LauncherHostsTest, AHostWithoutTheBinariesEndsTheJobWithAWord) {
  fs::remove(here_ + "/bin/deploy/remote/remote_task");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(LaunchOnHosts(), kLimit));
  EXPECT_EQ(launcher.end.code(), 127);
  EXPECT_THAT(std::string(Result(launcher)["error"]),
              AllOf(HasSubstr("exit code 127"), HasSubstr("remote_task")));
}

TEST_F(LauncherHostsTest, ALostConnectionEndsTheTaskBeforeItStartsAgain) {
  SetSsh(
      "case $2 in *type*worker*) echo $$ > \"$HERE/.ssh\"; "
      "mv \"$HERE/.ssh\" \"$HERE/ssh.pid\";; esac");
  SetRole("worker",
          absl::StrCat("if [ -e \"$HERE/worker.pid\" ]; then\n",
                       "  touch \"$HERE/go\"; exit 0\nfi\n", Stays("worker")));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(LaunchOnHosts({"--noevaluator"})));
  Await(*launcher, "worker.pid");
  const int worker = Pid("worker");
  kill(Pid("ssh"), SIGKILL);
  AwaitEnd(worker);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launcher->Wait(kLimit));
  EXPECT_EQ(end.code(), 0);
}

TEST_F(LauncherHostsTest, SignalDrainsAllTasksAndLeavesNoneOnAnyHost) {
  SetRole("chief", Stays("chief"));
  SetRole("ps", Stays("ps"));
  SetRole("worker",
          "trap 'echo drained; exit 143' TERM\n"
          "touch \"$HERE/ready\"\n"
          "while :; do sleep 0.02; done");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(LaunchOnHosts({"--noevaluator"})));
  for (const char* file : {"ready", "ps.pid", "chief.pid"}) {
    Await(*launcher, file);
  }
  launcher->Signal(SIGINT);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launcher->Wait(kLimit));
  EXPECT_EQ(end.code(), 130);
  EXPECT_THAT(Log("worker-0"), HasSubstr("drained"));
  for (const char* role : {"ps", "chief"}) {
    EXPECT_EQ(kill(Pid(role), 0), -1) << role;
  }
}

TEST_F(LauncherHostsTest, NoTaskOutlivesALauncherThatIsKilled) {
  for (const char* role : {"chief", "ps", "worker", "evaluator"}) {
    SetRole(role, "trap '' TERM\n" + Stays(role));
  }
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(LaunchOnHosts()));
  for (const char* role : {"chief", "ps", "worker", "evaluator"}) {
    Await(*launcher, absl::StrCat(role, ".pid"));
  }
  launcher->Kill();
  for (const char* role : {"chief", "ps", "worker", "evaluator"}) {
    AwaitEnd(Pid(role));
  }
}

TEST_F(LauncherHostsTest, ASecondSignalEndsAlsoAConnectionThatHangs) {
  SetRole("chief", "trap '' TERM\n" + Stays("chief"));
  SetSsh("if [ $host = beta ]; then touch \"$HERE/hangs\"; sleep 60; fi");
  SubprocessOptions options = LaunchOnHosts({"--ps=2"});
  options.standard_error = OutputTo::File(here_ + "/stderr");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(options));
  Await(*launcher, "hangs");
  Await(*launcher, "chief.pid");
  launcher->Signal(SIGINT);
  while (Text("stderr").find("once more to stop at once") ==
         std::string::npos) {
    ASSERT_EQ(launcher->Poll(), std::nullopt);
  }
  launcher->Signal(SIGINT);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launcher->Wait(kLimit));
  EXPECT_EQ(end.code(), 130);
  AwaitEnd(Pid("chief"));
}

TEST_F(LauncherHostsTest, BadFlagsAreNamed) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--hosts=a;b"}, "--hosts: \"a;b\" is not a host"},
      {{"--hosts=-oProxyCommand=x"}, "is not a host"},
      {{"--base_port=0"}, "--base_port=0"},
      {{"--base_port=65534"}, "--base_port=65534: alpha has more tasks"},
      {{"--checkpoint_dir="}, "--checkpoint_dir is missing: with --hosts"},
      {{"--workers=2000000000"}, "at most 65536 of each"},
      {{"--hosts="}, "--ssh, --remote_dir: need --hosts"}};
  for (const auto& [flags, message] : cases) {
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(LaunchOnHosts(flags), kLimit));
    EXPECT_EQ(launcher.end.code(), 2) << message;
    EXPECT_THAT(launcher.standard_error, HasSubstr(message));
  }
}

}  // namespace
}  // namespace parasol
