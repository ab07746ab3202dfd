#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/testing/launcher_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/directory_lock.h"

// The launcher as users start it, with shell scripts in place of the roles.
namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using LauncherTest = LauncherFixture;

TEST_F(LauncherTest, JobThatEndsSucceedsWithItsLastCheckpointAndEvaluation) {
  SetRole("chief",
          "mkdir -p $HERE/checkpoints/ckpt-000000000100\n"
          "echo '{\"global_step\":100,\"accuracy\":0.5,\"loss\":1.5}'"
          " > $HERE/checkpoints/evaluations.jsonl\n"
          "touch $HERE/go");
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      RunSubprocess(Launch({"--ps=2", "--workers=2"}), kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  const nlohmann::json result = Result(launcher);
  EXPECT_EQ(result["status"], "succeeded");
  EXPECT_EQ(result["eval"]["accuracy"], 0.5);
  EXPECT_EQ(result["metrics"].size(), 6u);
}

TEST_F(LauncherTest, TheReasonIsALineOfJsonWhereTheLogIs) {
  const std::vector<std::string> cases[] = {
      {"--log_format=json", "--workers=0"}, {"--log_format=json", "--job=/no"}};
  for (const std::vector<std::string>& flags : cases) {
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(Launch(flags), kLimit));
    EXPECT_EQ(launcher.end.code(), 2);
    const std::vector<std::string> lines =
        absl::StrSplit(launcher.standard_error, '\n', absl::SkipWhitespace());
    const nlohmann::json last =
        nlohmann::json::parse(lines.back(), nullptr, false);
    ASSERT_TRUE(last.is_object()) << lines.back();
    EXPECT_EQ(last["severity"], "ERROR");
    EXPECT_EQ(last["exit_code"], 2);
    EXPECT_EQ(last["message"], Result(launcher)["error"]);
  }
}

// `script` gives the launcher a terminal, on which its progress is one line.
TEST_F(LauncherTest, OnATerminalTheSummaryBeginsInTheFirstColumn) {
  SetRole("chief",
          "while ! grep -q starting $HERE/terminal; do sleep 0.02; done\n"
          "touch $HERE/go");
  SubprocessOptions options = Launch();
  std::string command;
  for (const std::string& word : options.argv) {
    absl::StrAppend(&command, " '", word, "'");
  }
  options.argv = {"/usr/bin/script", "--quiet", "--return",         "--flush",
                  "--command",       command,   here_ + "/terminal"};
  if (!fs::exists(options.argv[0])) GTEST_SKIP() << "no " << options.argv[0];
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_output;
  EXPECT_THAT(launcher.standard_output,
              HasSubstr("starting\r\x1b[KJob succeeded"));
}

TEST_F(LauncherTest, TasksGetTheirPlaceAndFlags) {
  SetRole("ps", "echo $TF_CONFIG; exit 0");
  SetRole("worker", "echo \"$@\"; exit 0");
  SetRole("chief", "echo \"$@\"; touch $HERE/go");
  ASSERT_OK(RunSubprocess(
      Launch({"--ps=2", "--threads=2", "--set=seed=1", "--set", "end.steps=7"}),
      kLimit));
  EXPECT_THAT(Log("ps-1"), HasSubstr(R"("task":{"type":"ps","index":1}})"));
  EXPECT_THAT(Log("chief-0"),
              AllOf(HasSubstr("--job=" + here_ + "/job.textproto"),
                    HasSubstr("--set=seed=1 --set=end.steps=7")));
  EXPECT_THAT(Log("worker-0"), HasSubstr("--threads=2"));
}

TEST_F(LauncherTest, TaskThatIsKilledStartsAgain) {
  SetRole("ps",
          "if [ ! -e $HERE/killed ]; then touch $HERE/killed; kill -9 $$; fi\n"
          "touch $HERE/go");
  SetRole("chief", kWaitsForGo);
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(Launch(), kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(
      launcher.standard_error,
      HasSubstr("ps/0 ended with signal 9 (Killed); starting it again"));
}

TEST_F(LauncherTest, FailureOfATaskEndsTheJobWithItsCodeAndWords) {
  SetRole("worker", "echo 'worker: loss is not finite at step 7' >&2; exit 1");
  SetRole("ps", absl::StrCat("echo $$ > $HERE/ps_pid; ", kStays));
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(Launch(), kLimit));
  EXPECT_EQ(launcher.end.code(), 1);
  const nlohmann::json result = Result(launcher);
  EXPECT_EQ(result["status"], "failed");
  EXPECT_THAT(std::string(result["error"]),
              AllOf(HasSubstr("worker/0 ended with exit code 1"),
                    HasSubstr("loss is not finite at step 7")));
  EXPECT_THAT(launcher.standard_error, HasSubstr(result["error"]));
}

TEST_F(LauncherTest, TheCodeOfTheTaskThatKnowsTheReasonIsTheResult) {
  SetRole("worker", "echo 'worker: the job has failed' >&2; exit 1");
  SetRole("ps", kStays);
  SetRole("chief",
          "while ! grep -q failed $HERE/checkpoints/logs/worker-0.log; do "
          "sleep 0.02; done\n"
          "echo 'chief: no checkpoint: disk full' >&2; exit 2");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(Launch(), kLimit));
  EXPECT_EQ(launcher.end.code(), 2);
  EXPECT_THAT(std::string(Result(launcher)["error"]),
              HasSubstr("exit code 2: no checkpoint: disk full"));
}

TEST_F(LauncherTest, SignalDrainsAllTasksAndLeavesNoneBehind) {
  SetRole("ps", absl::StrCat("echo $$ > $HERE/ps_pid; ", kStays));
  SetRole("worker",
          "trap 'echo drained; exit 143' TERM\n"
          "touch $HERE/ready\n"
          "while :; do sleep 0.02; done");
  SubprocessOptions options = Launch();
  options.standard_output = OutputTo::File(here_ + "/stdout");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(options));
  while (!fs::exists(here_ + "/ready") || !fs::exists(here_ + "/ps_pid")) {
    ASSERT_EQ(launcher->Poll(), std::nullopt);
  }
  launcher->Signal(SIGINT);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launcher->Wait(kLimit));
  EXPECT_EQ(end.code(), 130);
  EXPECT_THAT(Log("worker-0"), HasSubstr("drained"));
  int ps_pid = 0;
  std::ifstream(here_ + "/ps_pid") >> ps_pid;
  EXPECT_EQ(kill(ps_pid, 0), -1);
  std::ifstream output(here_ + "/stdout");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(output), {}),
              HasSubstr(R"({"status":"interrupted")"));
}

// The ps would be waited for as long as the launcher waits.
TEST_F(LauncherTest, TheSecondSignalEndsAllAtOnceWithTheResult) {
  SetRole("ps",
          "trap '' TERM; touch $HERE/ready; while :; do sleep 0.02; done");
  SetRole("worker", kStays);
  SubprocessOptions options = Launch();
  options.standard_output = OutputTo::File(here_ + "/stdout");
  options.standard_error = OutputTo::File(here_ + "/stderr");
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Subprocess> launcher,
                       Subprocess::Start(options));
  const auto text = [this](const std::string& name) {
    std::ifstream file(here_ + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  while (!fs::exists(here_ + "/ready")) {
    ASSERT_EQ(launcher->Poll(), std::nullopt);
  }
  launcher->Signal(SIGINT);
  while (text("stderr").find("once more") == std::string::npos) {
    ASSERT_EQ(launcher->Poll(), std::nullopt);
  }
  launcher->Signal(SIGINT);
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, launcher->Wait(kLimit));
  EXPECT_EQ(end.code(), 130);
  EXPECT_THAT(text("stdout"), HasSubstr(R"({"status":"interrupted")"));
  EXPECT_THAT(text("stderr"), Not(HasSubstr("waiting for ps/0")));
}

TEST_F(LauncherTest, CheckpointsWithoutADirectoryAreUnderTheUsersData) {
  SetRole("chief", "echo \"$@\"; touch $HERE/go");
  SubprocessOptions options = Launch({"--checkpoint_dir="});
  options.environment["XDG_DATA_HOME"] = here_ + "/data";
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(launcher.standard_error,
              HasSubstr("checkpoints: " + here_ + "/data/parasol/runs/run-"));
}

TEST_F(LauncherTest, TheOldestOfElevenRunsIsRemovedUnlessItIsInUse) {
  const std::string runs = here_ + "/data/parasol/runs/";
  std::vector<std::string> old;
  for (int i = 0; i < 11; ++i) {
    old.push_back(absl::StrCat(runs, "run-20010909-0146", 10 + i, "-abcdef"));
    fs::create_directories(old.back());
    fs::last_write_time(old.back(), fs::file_time_type::clock::now() -
                                        std::chrono::hours(100 - i));
  }
  SetRole("chief", "touch $HERE/go");
  SubprocessOptions options = Launch({"--checkpoint_dir="});
  options.environment["XDG_DATA_HOME"] = here_ + "/data";
  {
    ASSERT_OK_AND_ASSIGN(const DirectoryLock in_use,
                         DirectoryLock::Share(old[0]));
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(options, kLimit));
    EXPECT_THAT(launcher.standard_error,
                HasSubstr("/runs: 1 (the 10 newest stay)"));
  }
  EXPECT_TRUE(fs::exists(old[0]));
  EXPECT_FALSE(fs::exists(old[1]));
  EXPECT_TRUE(fs::exists(old[2]));
}

TEST_F(LauncherTest, ARunIsNotCleanedUpBehindItsOwnBack) {
  for (int i = 0; i < 10; ++i) {
    const std::string later = absl::StrCat(
        here_, "/data/parasol/runs/run-20010909-0146", 10 + i, "-abcdef");
    fs::create_directories(later);
    fs::last_write_time(
        later, fs::file_time_type::clock::now() + std::chrono::hours(1));
  }
  SetRole("chief", "touch $HERE/go");
  SubprocessOptions options = Launch({"--checkpoint_dir="});
  options.environment["XDG_DATA_HOME"] = here_ + "/data";
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(options, kLimit));
  EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
  EXPECT_THAT(launcher.standard_error, Not(HasSubstr("old runs removed")));
}

TEST_F(LauncherTest, AUserWithoutAHomeGetsATemporaryDirectory) {
  SetRole("chief", "touch $HERE/go");
  SubprocessOptions options = Launch({"--checkpoint_dir="});
  options.environment["XDG_DATA_HOME"] = "";
  options.environment["HOME"] = "";
  options.environment["TMPDIR"] = here_;
  ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                       RunSubprocess(options, kLimit));
  EXPECT_THAT(launcher.standard_error,
              HasSubstr("checkpoints: " + here_ + "/parasol-"));
}

TEST_F(LauncherTest, DirectoriesThatCannotBeUsedAreNamedInOneLine) {
  for (const std::string home : {"", "/proc/none"}) {
    SCOPED_TRACE(home);
    SubprocessOptions options = Launch({"--checkpoint_dir="});
    options.environment["XDG_DATA_HOME"] = "";
    options.environment["HOME"] = home;
    options.environment["TMPDIR"] = "/nonexistent";
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(options, kLimit));
    EXPECT_EQ(launcher.end.code(), 2);
    EXPECT_THAT(launcher.standard_error,
                AllOf(HasSubstr("TMPDIR=/nonexistent: is no directory for "
                                "temporary files; set --checkpoint_dir"),
                      HasSubstr(home)));
  }
}

TEST_F(LauncherTest, WithoutPsTheWorkersTrainAlone) {
  SetRole("worker", "echo $TF_CONFIG; touch $HERE/go; exit 0");
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{
           {"--ps=0", "--workers=2"},
           {"--ps=0", "--workers=2", "--strategy=multi_worker_mirrored"}}) {
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(Launch(flags), kLimit));
    EXPECT_EQ(launcher.end.code(), 0) << launcher.standard_error;
    EXPECT_THAT(Log("worker-1"),
                AllOf(HasSubstr("worker"), Not(HasSubstr("\"ps\""))));
  }
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess launcher,
      RunSubprocess(Launch({"--ps=0", "--strategy=parameter_server"}), kLimit));
  EXPECT_EQ(launcher.end.code(), 2);
  EXPECT_THAT(launcher.standard_error, HasSubstr("the cluster has no ps"));
}

TEST_F(LauncherTest, BadFlagsAreNamed) {
  struct Case {
    std::string flag;
    std::string message;
  };
  const Case cases[] = {
      {"--job=/no/such.textproto", "/no/such.textproto"},
      {"--data_dir=/no/such/dir", "/no/such/dir"},
      {"--data_dir=" + here_ + "/job.textproto", "job.textproto: is a file"},
      {"--job=" + here_, "Is a directory"},
      {"--ps=-1", "--ps=-1: at least 0"},
      {"--workers=0", "--workers=0: at least one"},
      {"--threads=0", "--threads=0"},
      {"--set=end.stepps=7", "stepps"},
      {"--wrokers=2", "unknown flag --wrokers"},
      {"--worker_binary=/no/such/w", "--worker_binary"},
      {"--ps_binary=/no/such/ps", "--ps_binary"},
      {"--bin_dir=/no/such/bin", "/no/such/bin/chief/chief"}};
  for (const Case& c : cases) {
    ASSERT_OK_AND_ASSIGN(const CompletedProcess launcher,
                         RunSubprocess(Launch({c.flag}), kLimit));
    EXPECT_EQ(launcher.end.code(), 2) << c.flag;
    EXPECT_THAT(launcher.standard_error, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace parasol
