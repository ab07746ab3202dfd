// What a user gets for a mistake or a missing peer: one clear line, the right
// exit code.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

namespace fs = std::filesystem;

fs::path TempPath(const std::string& name) {
  return fs::path(getenv("TEST_TMPDIR")) / name;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  const fs::path path = TempPath(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

CompletedProcess RunBinary(std::vector<std::string> argv,
                           const std::string& tf_config = "") {
  SubprocessOptions options;
  argv[0] = BinaryPath(argv[0]);
  options.argv = std::move(argv);
  options.environment["TF_CONFIG"] = tf_config;
  auto completed = RunSubprocess(options, absl::Minutes(1));
  EXPECT_OK(completed);
  return completed.ok() ? *std::move(completed) : CompletedProcess();
}

// The last line: the one that the process ended with.
std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  return lines.empty() ? "" : lines.back();
}

// chief, one ps and one worker on free ports, as seen by `type`.
class ByHandTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(ports_, FreeLoopbackPorts(3)); }
  std::string TfConfig(const std::string& type) const {
    return absl::StrCat(
        R"({"cluster": {"chief": ["127.0.0.1:)", ports_[0],
        R"("], "ps": ["127.0.0.1:)", ports_[1], R"("], "worker": ["127.0.0.1:)",
        ports_[2], R"("]}, "task": {"type": ")", type, R"(", "index": 0}})");
  }
  std::string Job() const { return WriteFile("job.textproto", DigitsJob()); }

  std::vector<int> ports_;
};

TEST_F(ByHandTest, AFlagThatDoesNotExistIsNamed) {
  for (const std::string binary :
       {"ps/ps", "worker/worker", "chief/chief", "evaluator/evaluator",
        "deploy/local/launcher"}) {
    SCOPED_TRACE(binary);
    const CompletedProcess run = RunBinary({binary, "--no_such_flag=1"});
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error, HasSubstr("no_such_flag"));
    EXPECT_THAT(std::vector<std::string>(absl::StrSplit(
                    run.standard_error, '\n', absl::SkipEmpty())),
                SizeIs(1));
  }
}

TEST_F(ByHandTest, HelpAndVersionAreForPeople) {
  for (const std::string binary :
       {"ps/ps", "worker/worker", "chief/chief", "evaluator/evaluator"}) {
    SCOPED_TRACE(binary);
    const CompletedProcess help = RunBinary({binary, "--help"});
    EXPECT_EQ(help.end.code(), 0);
    EXPECT_THAT(help.standard_output,
                AllOf(HasSubstr("check_config"), HasSubstr("--log_format")));
    const CompletedProcess version = RunBinary({binary, "--version"});
    EXPECT_EQ(version.end.code(), 0);
    EXPECT_THAT(version.standard_output,
                AllOf(StartsWith("parasol "), HasSubstr("commit ")));
  }
}

TEST_F(ByHandTest, CheckConfigPrintsTheTaskAndOpensNothing) {
  const CompletedProcess run =
      RunBinary({"worker/worker", "--check_config"}, TfConfig("worker"));
  EXPECT_EQ(run.end.code(), 0);
  EXPECT_THAT(run.standard_error, IsEmpty());
  const auto line = nlohmann::json::parse(run.standard_output);
  EXPECT_EQ(line["task_type"], "worker");
  EXPECT_EQ(line["chief_address"], absl::StrCat("127.0.0.1:", ports_[0]));
}

TEST_F(ByHandTest, CheckConfigOfAChiefRefusesWhatItsStartRefuses) {
  const std::string job = absl::StrCat("--job=", Job());
  EXPECT_EQ(RunBinary({"chief/chief", "--check_config", job}, TfConfig("chief"))
                .end.code(),
            0);
  for (const std::string strategy :
       {"mirrored", "hybrid", "multi_worker_mirrored"}) {
    const std::string set = absl::StrCat("--set=strategy.", strategy, "={}");
    for (const std::string check : {"--check_config", "--nocheck_config"}) {
      SCOPED_TRACE(absl::StrCat(strategy, " ", check));
      const CompletedProcess run = RunBinary(
          {"chief/chief", check, job, set,
           absl::StrCat("--checkpoint_dir=", TempPath("refused").string())},
          TfConfig("chief"));
      EXPECT_EQ(run.end.code(), 2);
      EXPECT_THAT(run.standard_output, IsEmpty());
      EXPECT_THAT(LastLine(run.standard_error),
                  HasSubstr(absl::StrCat("strategy.", strategy)));
    }
  }
}

TEST_F(ByHandTest, ABadTfConfigIsOneLineAndExitCodeTwo) {
  const CompletedProcess run = RunBinary({"ps/ps"}, R"({"cluster": 7})");
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error,
              AllOf(StartsWith("ps: "), HasSubstr("cluster")));
  EXPECT_EQ(absl::StrCat(LastLine(run.standard_error), "\n"),
            run.standard_error);
}

TEST_F(ByHandTest, APsThatNeverComesIsNamedAndAsksForARestart) {
  const CompletedProcess run = RunBinary(
      {"chief/chief", absl::StrCat("--job=", Job()), "--ps_timeout=1s",
       absl::StrCat("--checkpoint_dir=", TempPath("no_ps").string())},
      TfConfig("chief"));
  EXPECT_EQ(run.end.code(), 138);
  EXPECT_THAT(LastLine(run.standard_error), HasSubstr("ps/0"));
}

TEST_F(ByHandTest, AChiefThatNeverComesIsNamedAndAsksForARestart) {
  for (const std::string role : {"ps", "worker", "evaluator"}) {
    SCOPED_TRACE(role);
    const CompletedProcess run = RunBinary(
        {absl::StrCat(role, "/", role), "--chief_timeout=1s"}, TfConfig(role));
    EXPECT_EQ(run.end.code(), 138);
    EXPECT_THAT(LastLine(run.standard_error),
                HasSubstr(absl::StrCat("127.0.0.1:", ports_[0])));
  }
}

TEST_F(ByHandTest, AWrongFlagEndsATaskBeforeItAsksTheChief) {
  const std::string file = WriteFile("data_file", "x");
  for (const std::string role : {"worker", "evaluator"}) {
    for (const std::string& flag :
         {std::string("--device=tpu"), std::string("--device=cuda:999"),
          std::string("--threads=0"), std::string("--data_dir=/no/such/dir"),
          "--data_dir=" + file}) {
      SCOPED_TRACE(absl::StrCat(role, " ", flag));
      // Nothing listens at the chief's address: a task that asked would wait.
      const CompletedProcess run =
          RunBinary({absl::StrCat(role, "/", role), flag}, TfConfig(role));
      EXPECT_EQ(run.end.code(), 2);
      EXPECT_THAT(run.standard_error,
                  StartsWith(absl::StrCat(role, ": ", flag, ": ")));
    }
  }
}

TEST_F(ByHandTest, AJobGivenToAWorkerBesideAChiefIsRefused) {
  for (const std::string& flag :
       {std::string("--job=job.textproto"), std::string("--set=seed=1"),
        std::string("--checkpoint_dir=/ckpt")}) {
    const CompletedProcess run =
        RunBinary({"worker/worker", flag}, TfConfig("worker"));
    EXPECT_EQ(run.end.code(), 2);
    EXPECT_THAT(run.standard_error,
                AllOf(StartsWith(absl::StrCat("worker: ", flag, ": ")),
                      HasSubstr("give this flag to the chief")));
  }
}

TEST_F(ByHandTest, AJobThatIsADirectoryIsBadConfiguration) {
  const CompletedProcess run =
      RunBinary({"chief/chief", absl::StrCat("--job=", TempPath("").string())},
                TfConfig("chief"));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(LastLine(run.standard_error), HasSubstr("Is a directory"));
}

TEST_F(ByHandTest, APortInUseIsNamed) {
  SubprocessOptions first;
  first.argv = {BinaryPath("ps/ps")};
  first.environment["TF_CONFIG"] = TfConfig("ps");
  first.standard_error = OutputTo::File(TempPath("first_ps.log"));
  ASSERT_OK_AND_ASSIGN(auto listening, Subprocess::Start(first));
  // It says so in its log once it listens.
  ASSERT_OK(WaitUntil("the first ps", [] {
    std::ifstream log(TempPath("first_ps.log"));
    std::string line;
    while (std::getline(log, line)) {
      if (line.find("waiting for the chief") != std::string::npos ||
          line.find("chief at") != std::string::npos ||
          line.find("listen") != std::string::npos ||
          line.find("serving") != std::string::npos) {
        return true;
      }
    }
    return false;
  }));
  const CompletedProcess second = RunBinary({"ps/ps"}, TfConfig("ps"));
  EXPECT_EQ(second.end.code(), 2);
  EXPECT_THAT(LastLine(second.standard_error),
              HasSubstr(absl::StrCat("127.0.0.1:", ports_[1])));
}

TEST_F(ByHandTest, ACheckpointDirectoryThatIsAFileIsNamed) {
  const std::string file = WriteFile("not_a_directory", "x");
  const CompletedProcess run =
      RunBinary({"chief/chief", absl::StrCat("--job=", Job()),
                 absl::StrCat("--checkpoint_dir=", file)},
                TfConfig("chief"));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(LastLine(run.standard_error), HasSubstr(file));
}

TEST_F(ByHandTest, AFieldThatAJobDoesNotHaveIsNamedWithItsLine) {
  const std::string job = WriteFile("bad.textproto", "name: \"x\"\nspeed: 9\n");
  const CompletedProcess run =
      RunBinary({"chief/chief", absl::StrCat("--job=", job),
                 absl::StrCat("--checkpoint_dir=", TempPath("bad").string())},
                TfConfig("chief"));
  EXPECT_EQ(run.end.code(), 2);
  // A line for each fault.
  EXPECT_THAT(run.standard_error,
              testing::ContainsRegex("bad.textproto:2:[^\n]*speed"));
}

class LaunchedFailureTest : public testing::Test {
 protected:
  LaunchedCluster::Result Launch(LaunchedCluster::Options options) {
    auto cluster = LaunchedCluster::Start(options);
    EXPECT_OK(cluster);
    auto result = (*cluster)->Wait();
    EXPECT_OK(result);
    return *result;
  }
};

TEST_F(LaunchedFailureTest, AMissingDataFileEndsTheJobAndIsNamed) {
  LaunchedCluster::Options options;
  options.overrides = {"train.idx.images=nowhere.gz"};
  const auto result = Launch(options);
  EXPECT_THAT(result.exit_code, testing::AnyOf(1, 2));
  EXPECT_EQ(nlohmann::json::parse(result.json)["status"], "failed");
  EXPECT_THAT(result.json, HasSubstr("nowhere.gz"));
}

TEST_F(LaunchedFailureTest, ACorruptDataFileEndsTheJobAndIsNamed) {
  const fs::path broken = TempPath("broken_digits");
  fs::remove_all(broken);
  fs::copy(DigitsDirectory(), broken);
  fs::resize_file(broken / "train-images-idx3-ubyte.gz", 1000);
  LaunchedCluster::Options options;
  options.data_dir = broken;
  const auto result = Launch(options);
  // The launcher finds it before it starts anything.
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.json, HasSubstr("train-images-idx3-ubyte.gz"));
}

TEST_F(LaunchedFailureTest, ALossThatIsNotFiniteEndsTheJob) {
  LaunchedCluster::Options options;
  options.overrides = {"optimizer.sgd.learning_rate=1e30"};
  const auto result = Launch(options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.json, HasSubstr("loss"));
}

}  // namespace
}  // namespace parasol
