// Workers started by hand where no chief is listed, or no cluster at all.

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);

class WithoutChiefTest : public testing::Test {
 protected:
  WithoutChiefTest()
      : directory_(
            fs::path(getenv("TEST_TMPDIR")) /
            testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::create_directories(directory_);
    std::ofstream(directory_ / "job.textproto") << DigitsJob();
  }

  std::vector<std::string> JobFlags() const {
    return {absl::StrCat("--job=", (directory_ / "job.textproto").string()),
            absl::StrCat("--checkpoint_dir=", checkpoints())};
  }
  std::string checkpoints() const { return directory_ / "checkpoints"; }
  int64_t NewestStep() const {
    const auto steps = CheckpointStore(checkpoints()).ListSteps();
    return steps.ok() && !steps->empty() ? steps->back() : -1;
  }

  static SubprocessOptions Role(const std::string& binary,
                                const std::string& tf_config,
                                std::vector<std::string> flags) {
    SubprocessOptions options;
    options.argv = {BinaryPath(binary)};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.environment["TF_CONFIG"] = tf_config;
    return options;
  }

  const fs::path directory_;
};

TEST_F(WithoutChiefTest, ALoneWorkerTrainsAndGoesOnFromItsCheckpoint) {
  std::vector<std::string> flags = JobFlags();
  flags.push_back(absl::StrCat("--data_dir=", DigitsDirectory()));
  ASSERT_OK_AND_ASSIGN(const CompletedProcess first,
                       RunSubprocess(Role("worker/worker", "", flags), kLimit));
  EXPECT_EQ(first.end.code(), 0) << first.standard_error;
  EXPECT_EQ(NewestStep(), 600);
  EXPECT_THAT(first.standard_error, HasSubstr("step 600: accuracy 0.9"));

  flags.push_back("--set=end.steps=700");
  ASSERT_OK_AND_ASSIGN(const CompletedProcess second,
                       RunSubprocess(Role("worker/worker", "", flags), kLimit));
  EXPECT_EQ(second.end.code(), 0) << second.standard_error;
  EXPECT_THAT(second.standard_error, HasSubstr("resuming at step 600"));
  EXPECT_EQ(NewestStep(), 700);
}

// Has `parasol` ask who answers at `port` for stacks and a trace.
void ExpectItShows(int port, const std::vector<std::string>& tasks,
                   const fs::path& trace) {
  const std::string chief = absl::StrCat("127.0.0.1:", port);
  const auto ask = [&](std::vector<std::string> words) {
    SubprocessOptions options;
    options.argv = {BinaryPath("tool/parasol"), words[0], chief};
    options.argv.insert(options.argv.end(), words.begin() + 1, words.end());
    const auto run = RunSubprocess(options, kLimit);
    EXPECT_OK(run.status());
    return run.ok() ? *run : CompletedProcess();
  };
  ASSERT_OK(WaitUntil(
      "the parts of a step",
      [&] {
        return absl::StrContains(ask({"status"}).standard_output,
                                 "steps/s: in");
      },
      kLimit));
  // Code that oneDNN has compiled at run time has no unwind table: a thread
  // that is in it shows one address.
  CompletedProcess stacks;
  ASSERT_OK(WaitUntil(
      "the stack of the thread that trains",
      [&] {
        stacks = ask({"why", "--stacks=all"});
        return absl::StrContains(stacks.standard_output,
                                 "parasol::RunWorker()");
      },
      kLimit));
  EXPECT_EQ(stacks.end.code(), 0) << stacks.standard_error;
  const CompletedProcess traced =
      ask({"trace", "--steps=3", absl::StrCat("--output=", trace.string())});
  EXPECT_EQ(traced.end.code(), 0) << traced.standard_error;
  for (const std::string& task : tasks) {
    EXPECT_THAT(stacks.standard_output, HasSubstr(absl::StrCat("\n", task)));
    EXPECT_THAT(traced.standard_output, HasSubstr(task));
  }
  EXPECT_TRUE(fs::exists(trace));
}

TEST_F(WithoutChiefTest, ALoneWorkerShowsWhatItDoes) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(1));
  std::vector<std::string> flags = JobFlags();
  flags.push_back(absl::StrCat("--data_dir=", DigitsDirectory()));
  flags.push_back(absl::StrCat("--status_address=127.0.0.1:", ports[0]));
  flags.push_back("--set=end.steps=1000000000");
  ASSERT_OK_AND_ASSIGN(auto worker,
                       Subprocess::Start(Role("worker/worker", "", flags)));
  ExpectItShows(ports[0], {"worker/0"}, directory_ / "trace.json");
  worker->Signal(SIGKILL);
  ASSERT_OK(worker->Wait(kLimit).status());
}

TEST_F(WithoutChiefTest, ALoneWorkerWithoutAJobSaysSo) {
  ASSERT_OK_AND_ASSIGN(const CompletedProcess run,
                       RunSubprocess(Role("worker/worker", "", {}), kLimit));
  EXPECT_EQ(run.end.code(), 2);
  EXPECT_THAT(run.standard_error, HasSubstr("--job"));
}

TEST_F(WithoutChiefTest, WorkerZeroDoesTheChiefsDuties) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(3));
  const auto tf_config = [&](const std::string& type, int index) {
    return absl::StrCat(R"({"cluster": {"ps": ["127.0.0.1:)", ports[0],
                        R"("], "worker": ["127.0.0.1:)", ports[1],
                        R"(", "127.0.0.1:)", ports[2],
                        R"("]}, "task": {"type": ")", type, R"(", "index": )",
                        index, "}}");
  };
  const std::string data = absl::StrCat("--data_dir=", DigitsDirectory());
  ASSERT_OK_AND_ASSIGN(
      auto ps, Subprocess::Start(Role("ps/ps", tf_config("ps", 0), {})));
  ASSERT_OK_AND_ASSIGN(
      auto other,
      Subprocess::Start(Role("worker/worker", tf_config("worker", 1), {data})));
  std::vector<std::string> flags = JobFlags();
  flags.push_back(data);
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess first,
      RunSubprocess(Role("worker/worker", tf_config("worker", 0), flags),
                    kLimit));
  EXPECT_EQ(first.end.code(), 0) << first.standard_error;
  ASSERT_OK_AND_ASSIGN(const ProcessEnd ps_end, ps->Wait(kLimit));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd other_end, other->Wait(kLimit));
  EXPECT_EQ(ps_end.code(), 0);
  EXPECT_EQ(other_end.code(), 0);
  EXPECT_EQ(NewestStep(), 600);
}

// Two workers without ps.
std::string MirroredConfig(const std::vector<int>& ports, int index) {
  return absl::StrCat(
      R"({"cluster": {"worker": ["127.0.0.1:)", ports[0], R"(", "127.0.0.1:)",
      ports[1], R"("]}, "task": {"type": "worker", "index": )", index, "}}");
}

TEST_F(WithoutChiefTest, WorkersAloneShowWhatTheyDo) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(2));
  std::vector<std::unique_ptr<Subprocess>> workers;
  for (int index = 0; index < 2; ++index) {
    std::vector<std::string> flags = {
        absl::StrCat("--data_dir=", DigitsDirectory())};
    if (index == 0) {
      for (const std::string& flag : JobFlags()) flags.push_back(flag);
      flags.push_back("--set=end.steps=1000000000");
    }
    ASSERT_OK_AND_ASSIGN(
        workers.emplace_back(),
        Subprocess::Start(
            Role("worker/worker", MirroredConfig(ports, index), flags)));
  }
  ExpectItShows(ports[0], {"worker/0", "worker/1"}, directory_ / "trace.json");
  for (const auto& worker : workers) worker->Signal(SIGTERM);
  for (const auto& worker : workers) ASSERT_OK(worker->Wait(kLimit).status());
}

TEST_F(WithoutChiefTest, WorkerZeroEndsWhenItsChiefGivesUpWaiting) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(2));
  std::vector<std::string> flags = JobFlags();
  flags.push_back(absl::StrCat("--data_dir=", DigitsDirectory()));
  flags.push_back("--worker_timeout=1s");
  // kLimit is shorter than --chief_timeout, for which a worker waits for a
  // chief that does not answer.
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess run,
      RunSubprocess(Role("worker/worker", MirroredConfig(ports, 0), flags),
                    kLimit));
  EXPECT_EQ(run.end.code(), 138) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("chief: waited 1s for worker/1\n"));
}

TEST_F(WithoutChiefTest, ASecondWorkerZeroIsRefusedAndTheFirstGoesOn) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(2));
  std::vector<std::string> flags = JobFlags();
  flags.push_back(absl::StrCat("--data_dir=", DigitsDirectory()));
  ASSERT_OK_AND_ASSIGN(
      auto first, Subprocess::Start(
                      Role("worker/worker", MirroredConfig(ports, 0), flags)));
  ASSERT_OK(WaitUntil(
      "the first checkpoint", [&] { return NewestStep() == 0; }, kLimit));
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess second,
      RunSubprocess(Role("worker/worker", MirroredConfig(ports, 0), flags),
                    kLimit));
  EXPECT_EQ(second.end.code(), 2);
  EXPECT_THAT(second.standard_error,
              HasSubstr("another process of this task runs on this machine"));
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess other,
      RunSubprocess(Role("worker/worker", MirroredConfig(ports, 1),
                         {absl::StrCat("--data_dir=", DigitsDirectory())}),
                    kLimit));
  EXPECT_EQ(other.end.code(), 0) << other.standard_error;
  ASSERT_OK_AND_ASSIGN(const ProcessEnd first_end, first->Wait(kLimit));
  EXPECT_EQ(first_end.code(), 0);
  EXPECT_EQ(NewestStep(), 600);
}

TEST_F(WithoutChiefTest, WorkersWithOtherDataSayWhyTheyEnd) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(2));
  std::vector<std::string> flags = JobFlags();
  flags.push_back(absl::StrCat("--data_dir=", DigitsDirectory()));
  ASSERT_OK_AND_ASSIGN(
      auto other, Subprocess::Start(Role(
                      "worker/worker", MirroredConfig(ports, 1),
                      {absl::StrCat("--data_dir=", directory_.string())})));
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess zero,
      RunSubprocess(Role("worker/worker", MirroredConfig(ports, 0), flags),
                    kLimit));
  ASSERT_OK(other->Wait(kLimit).status());
  EXPECT_NE(zero.end.code(), 0);
  EXPECT_THAT(zero.standard_error,
              HasSubstr("worker: the job has failed: worker/1: "));
}

TEST_F(WithoutChiefTest, AWorkerWhoseAddressIsTakenSaysSo) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(3));
  const std::string tf_config = absl::StrCat(
      R"({"cluster": {"ps": ["127.0.0.1:)", ports[0], R"("], "chief": [)",
      R"("127.0.0.1:)", ports[1], R"("], "worker": ["127.0.0.1:)", ports[2],
      R"("]}, "task": {"type": "worker", "index": 0}})");
  const Descriptor taken(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(ports[2]);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  for (const std::string strategy : {"parameter_server", "hybrid"}) {
    SCOPED_TRACE(strategy);
    ASSERT_OK_AND_ASSIGN(
        const CompletedProcess run,
        RunSubprocess(Role("worker/worker", tf_config,
                           {absl::StrCat("--strategy=", strategy)}),
                      kLimit));
    EXPECT_EQ(run.end.code(), 2) << run.standard_error;
    EXPECT_THAT(run.standard_error, HasSubstr("the port is in use"));
  }
}

TEST_F(WithoutChiefTest, WorkerZeroEndsWithTheChiefBesideIt) {
  ASSERT_OK_AND_ASSIGN(const std::vector<int> ports, FreeLoopbackPorts(2));
  const std::string tf_config =
      absl::StrCat(R"({"cluster": {"ps": ["127.0.0.1:)", ports[0],
                   R"("], "worker": ["127.0.0.1:)", ports[1],
                   R"("]}, "task": {"type": "worker", "index": 0}})");
  const std::string data = absl::StrCat("--data_dir=", DigitsDirectory());
  ASSERT_OK_AND_ASSIGN(
      const CompletedProcess run,
      RunSubprocess(Role("worker/worker", tf_config, {data}), kLimit));
  EXPECT_EQ(run.end.code(), 2) << run.standard_error;
  EXPECT_THAT(run.standard_error, HasSubstr("chief: no job"));
}

}  // namespace
}  // namespace parasol
