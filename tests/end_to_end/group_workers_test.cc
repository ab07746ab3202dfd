// Workers of a cluster without ps, as processes: started by the launcher and by
// hand, killed and stopped.

#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "deploy/local/loopback_ports.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Minutes(2);

LaunchedCluster::Options GroupOf(int64_t steps) {
  LaunchedCluster::Options options;
  options.overrides = {absl::StrCat("end.steps=", steps)};
  options.flags = {"--strategy=multi_worker_mirrored"};
  return options;
}

Trained TrainedIn(const std::string& checkpoints, int64_t step) {
  const CheckpointStore store(checkpoints);
  auto reader = CheckpointReader::Open(store.PathOf(step));
  EXPECT_OK(reader);
  return reader.ok() ? ReadTrained(**reader) : Trained();
}

void ExpectDone(const LaunchedCluster::Result& result, int64_t steps) {
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  const auto json = nlohmann::json::parse(result.json);
  EXPECT_EQ(json["status"], "succeeded");
  EXPECT_EQ(json["global_step"], steps);
  EXPECT_GT(json["eval"]["accuracy"].get<double>(), 0.8);
}

TEST(GroupWorkersTest, TheyEndWithTheBitsOfASynchronousCluster) {
  ASSERT_OK_AND_ASSIGN(auto workers, LaunchedCluster::Start(GroupOf(200)));
  ASSERT_OK_AND_ASSIGN(const auto mirrored, workers->Wait());
  ExpectDone(mirrored, 200);
  EXPECT_THAT(workers->LogOf("worker/1"),
              AllOf(HasSubstr("ready at 127.0.0.1:"),
                    HasSubstr("strategy multi_worker_mirrored, AUTO"),
                    HasSubstr("2 replicas in sync, each with a batch of 32")));

  LaunchedCluster::Options options;
  options.overrides = {"end.steps=200", "parameter_server.synchronous={}"};
  ASSERT_OK_AND_ASSIGN(auto servers, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto synchronous, servers->Wait());
  ExpectDone(synchronous, 200);
  EXPECT_EQ(TrainedIn(workers->checkpoint_dir(), 200),
            TrainedIn(servers->checkpoint_dir(), 200));
}

TEST(GroupWorkersTest, AKilledWorkerChangesNoBitAndRestartsNoOther) {
  ASSERT_OK_AND_ASSIGN(auto calm, LaunchedCluster::Start(GroupOf(1500)));
  ASSERT_OK_AND_ASSIGN(const auto undisturbed, calm->Wait());
  ExpectDone(undisturbed, 1500);

  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(GroupOf(1500)));
  ASSERT_OK(cluster->AwaitStep(300));
  const auto before = cluster->Tasks();
  ASSERT_OK(cluster->Signal("worker/1", SIGKILL));
  ASSERT_OK(WaitUntil("a new worker/1", [&] {
    const auto now = cluster->Tasks();
    return now.contains("worker/1") &&
           now.at("worker/1") != before.at("worker/1");
  }));
  EXPECT_EQ(cluster->Tasks().at("worker/0"), before.at("worker/0"));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, 1500);
  EXPECT_EQ(TrainedIn(cluster->checkpoint_dir(), 1500),
            TrainedIn(calm->checkpoint_dir(), 1500));
}

// The launcher starts one worker alone where the strategy trains in one
// process, and starts it again when it dies. The job is long enough for the
// launcher to see that it goes on.
TEST(GroupWorkersTest, ReplicasOfOneProcessEndWithTheSameBits) {
  constexpr int kSteps = 6000;
  ASSERT_OK_AND_ASSIGN(auto workers, LaunchedCluster::Start(GroupOf(kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto undisturbed, workers->Wait());
  ExpectDone(undisturbed, kSteps);

  LaunchedCluster::Options options;
  options.overrides = {absl::StrCat("end.steps=", kSteps),
                       "strategy.mirrored={ device: 'cpu:0' device: 'cpu:1' }"};
  ASSERT_OK_AND_ASSIGN(auto alone, LaunchedCluster::Start(options));
  ASSERT_OK(WaitUntil("a checkpoint of step 300", [&] {
    return absl::StrContains(alone->LogOf("worker/0"), "ckpt-000000000300");
  }));
  EXPECT_THAT(alone->Tasks(), testing::SizeIs(1));
  ASSERT_OK(alone->Signal("worker/0", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result, alone->Wait());
  ExpectDone(result, kSteps);
  EXPECT_THAT(result.progress, AllOf(HasSubstr("worker/0 ended with signal 9"),
                                     HasSubstr("resuming at step ")));
  EXPECT_EQ(TrainedIn(alone->checkpoint_dir(), kSteps),
            TrainedIn(workers->checkpoint_dir(), kSteps));
}

// Two workers with two devices each, of which one is killed in a step, have the
// bits of one process with four.
TEST(GroupWorkersTest, SeveralDevicesInEachWorkerEndWithTheSameBits) {
  constexpr int kSteps = 3000;
  LaunchedCluster::Options options = GroupOf(kSteps);
  options.overrides.push_back(
      "strategy.multi_worker_mirrored={ device: '/cpu:0' device: 'cpu:1' }");
  ASSERT_OK_AND_ASSIGN(auto workers, LaunchedCluster::Start(options));
  ASSERT_OK(workers->AwaitStep(300));
  const auto before = workers->Tasks();
  ASSERT_OK_AND_ASSIGN(const auto status, workers->Status());
  EXPECT_EQ(status.num_replicas_in_sync(), 4);
  ASSERT_OK(workers->Signal("worker/1", SIGKILL));
  ASSERT_OK(WaitUntil("a new worker/1", [&] {
    const auto now = workers->Tasks();
    return now.contains("worker/1") &&
           now.at("worker/1") != before.at("worker/1");
  }));
  EXPECT_EQ(workers->Tasks().at("worker/0"), before.at("worker/0"));
  ASSERT_OK_AND_ASSIGN(const auto killed, workers->Wait());
  ExpectDone(killed, kSteps);
  EXPECT_THAT(workers->LogOf("worker/0"),
              AllOf(HasSubstr("4 replicas in sync, each with a batch of 32"),
                    HasSubstr("this worker computes replica 0, 1\n"),
                    HasSubstr("group has ended")));
  EXPECT_THAT(workers->LogOf("worker/1"),
              HasSubstr("this worker computes replica 2, 3\n"));

  LaunchedCluster::Options one;
  one.overrides = {absl::StrCat("end.steps=", kSteps),
                   "strategy.mirrored={ device: 'cpu:0' device: 'cpu:1' "
                   "device: 'cpu:2' device: 'cpu:3' }"};
  ASSERT_OK_AND_ASSIGN(auto alone, LaunchedCluster::Start(one));
  ASSERT_OK_AND_ASSIGN(const auto undisturbed, alone->Wait());
  ExpectDone(undisturbed, kSteps);
  EXPECT_EQ(TrainedIn(workers->checkpoint_dir(), kSteps),
            TrainedIn(alone->checkpoint_dir(), kSteps));

  options.flags.push_back("--device=cpu");
  ASSERT_OK_AND_ASSIGN(auto refused, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto refusal, refused->Wait());
  EXPECT_EQ(refusal.exit_code, 2);
  EXPECT_THAT(refusal.progress,
              HasSubstr("--device=cpu: strategy.multi_worker_mirrored names "
                        "the devices; leave the flag out"));
}

TEST(GroupWorkersTest, AWorkerThatStandsStillIsDoneWithout) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(GroupOf(3000)));
  ASSERT_OK(cluster->AwaitStep(300));
  ASSERT_OK(cluster->Signal("worker/1", SIGSTOP));
  ASSERT_OK_AND_ASSIGN(const auto stopped, cluster->Status());
  ASSERT_OK(cluster->AwaitStep(stopped.global_step() + 300));
  EXPECT_THAT(cluster->LogOf("worker/0"), HasSubstr("group has ended"));
  ASSERT_OK(cluster->Signal("worker/1", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, 3000);
}

// Only the first values are in a checkpoint when worker 0, whose chief dies
// with it, is killed.
TEST(GroupWorkersTest, WorkerZeroGoesOnWithThePeersVariables) {
  LaunchedCluster::Options options = GroupOf(2500);
  options.overrides.push_back("checkpoint.every_steps=100000");
  options.job.replace(options.job.find("every_steps: 100"), 16, "");
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(500));
  ASSERT_OK(cluster->Signal("worker/0", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectDone(result, 2500);
  const std::string log = cluster->LogOf("worker/0");
  EXPECT_THAT(log, HasSubstr("resuming at step 0"));
  // It has loaded step 0, and then a peer's.
  const size_t summing = log.rfind(" from step ");
  ASSERT_NE(summing, std::string::npos);
  EXPECT_GE(atoi(log.c_str() + summing + 11), 500) << log;
}

TEST(GroupWorkersTest, ASecondLaunchGoesOnUnderAnotherStrategy) {
  ASSERT_OK_AND_ASSIGN(auto first, LaunchedCluster::Start(GroupOf(200)));
  ASSERT_OK_AND_ASSIGN(const auto stopped, first->Wait());
  ExpectDone(stopped, 200);
  LaunchedCluster::Options options;
  options.checkpoint_dir = first->checkpoint_dir();
  options.overrides = {"end.steps=400", "parameter_server.synchronous={}"};
  ASSERT_OK_AND_ASSIGN(auto second, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, second->Wait());
  ExpectDone(result, 400);
}

TEST(GroupWorkersTest, CtrlCWritesACheckpointAndLeavesNothingRunning) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(GroupOf(5000)));
  ASSERT_OK(cluster->AwaitStep(350));
  const auto tasks = cluster->Tasks();
  cluster->SignalLauncher(SIGINT);
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_EQ(nlohmann::json::parse(result.json)["status"], "interrupted");
  for (const auto& [task, pid] : tasks) {
    EXPECT_NE(kill(pid, 0), 0) << task << " still runs as " << pid;
  }
  const auto steps = CheckpointStore(cluster->checkpoint_dir()).ListSteps();
  ASSERT_OK(steps);
  EXPECT_GE(steps->back(), 350);
}

class GroupByHandTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(ports_, FreeLoopbackPorts(3));
    directory_ = fs::path(getenv("TEST_TMPDIR")) /
                 testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(directory_);
    std::ofstream(directory_ / "job.textproto") << DigitsJob();
  }

  SubprocessOptions Worker(int index, std::vector<std::string> flags) const {
    SubprocessOptions options;
    options.argv = {BinaryPath("worker/worker"),
                    absl::StrCat("--data_dir=", DigitsDirectory())};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.environment["TF_CONFIG"] = absl::StrCat(
        R"({"cluster": {"worker": ["localhost:)", ports_[0],
        R"(", "localhost:)", ports_[1], R"("]}, "task": {"type": "worker", )",
        R"("index": )", index, "}}");
    options.standard_error = OutputTo::File(Log(index));
    return options;
  }
  std::vector<std::string> JobFlags() const {
    return {absl::StrCat("--job=", (directory_ / "job.textproto").string()),
            absl::StrCat("--checkpoint_dir=", (directory_ / "ck").string()),
            "--set=end.steps=100"};
  }
  std::string Log(int index) const {
    return directory_ / absl::StrCat("job_", index, ".log");
  }
  std::string ReadLog(int index) const {
    std::ifstream file(Log(index));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<int> ports_;
  fs::path directory_;
};

// As the multi-worker lab does it: no chief, no ps, no --strategy.
TEST_F(GroupByHandTest, WorkersOfTfConfigTrainTogether) {
  ASSERT_OK_AND_ASSIGN(auto first, Subprocess::Start(Worker(0, JobFlags())));
  const std::string line = "waiting for worker/1, since 1";
  ASSERT_OK(WaitUntil("worker/0 waits for worker/1", [&] {
    return ReadLog(0).find(line) != std::string::npos;
  }));
  EXPECT_THAT(ReadLog(0),
              HasSubstr(absl::StrCat("ready at localhost:", ports_[0])));
  EXPECT_THAT(ReadLog(0), Not(HasSubstr("TRAINING")));
  ASSERT_OK_AND_ASSIGN(auto second, Subprocess::Start(Worker(1, {})));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd first_end, first->Wait(kLimit));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd second_end, second->Wait(kLimit));
  EXPECT_EQ(first_end.code(), 0) << ReadLog(0);
  EXPECT_EQ(second_end.code(), 0) << ReadLog(1);
  EXPECT_EQ(CheckpointStore(directory_ / "ck").ListSteps()->back(), 100);
  // Worker 0 is two tasks to its chief, and says it once.
  const std::string log = ReadLog(0);
  const size_t said = log.find(line);
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find(line, said + 1), std::string::npos) << log;
}

TEST_F(GroupByHandTest, ASecondProcessOfAWorkerSaysWhatToDo) {
  ASSERT_OK_AND_ASSIGN(auto first, Subprocess::Start(Worker(1, {})));
  ASSERT_OK(WaitUntil("worker/1 is ready", [&] {
    return ReadLog(1).find("ready at") != std::string::npos;
  }));
  SubprocessOptions again = Worker(1, {});
  again.standard_error = OutputTo::File(Log(2));
  ASSERT_OK_AND_ASSIGN(auto second, Subprocess::Start(again));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, second->Wait(kLimit));
  EXPECT_EQ(end.code(), 2);
  EXPECT_THAT(ReadLog(2), HasSubstr("worker/1: --collective_port=0: can't take "
                                    "collective operations on "));
  EXPECT_THAT(ReadLog(2), HasSubstr("such as another one of this task"));
}

TEST_F(GroupByHandTest, CheckConfigTakesWhatTheStartTakes) {
  for (const auto& [index, code] : {std::pair(0, 0), {1, 0}, {2, 2}}) {
    std::vector<std::string> flags = JobFlags();
    flags.push_back("--check_config");
    ASSERT_OK_AND_ASSIGN(auto worker, Subprocess::Start(Worker(index, flags)));
    ASSERT_OK_AND_ASSIGN(const ProcessEnd end, worker->Wait(kLimit));
    EXPECT_EQ(end.code(), code) << ReadLog(index);
  }
  EXPECT_THAT(ReadLog(2), HasSubstr("task.index: 2 is not in job"));
  std::vector<std::string> local = JobFlags();
  local.insert(local.end(), {"--check_config", "--set=strategy.mirrored={}"});
  ASSERT_OK_AND_ASSIGN(auto refused, Subprocess::Start(Worker(0, local)));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, refused->Wait(kLimit));
  EXPECT_EQ(end.code(), 2);
  EXPECT_THAT(ReadLog(0), HasSubstr("strategy.mirrored trains in one process"));
}

TEST_F(GroupByHandTest, ARefusalIsOneLineAndExitCodeTwo) {
  std::vector<std::string> nccl = JobFlags();
  nccl.push_back("--set=strategy.multi_worker_mirrored={communication: NCCL}");
  ASSERT_OK_AND_ASSIGN(auto worker, Subprocess::Start(Worker(0, nccl)));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd end, worker->Wait(kLimit));
  EXPECT_EQ(end.code(), 2);
  EXPECT_THAT(ReadLog(0),
              HasSubstr("strategy.multi_worker_mirrored.communication: NCCL"));

  SubprocessOptions with_chief = Worker(0, {});
  with_chief.environment["TF_CONFIG"] =
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"]},
          "task": {"type": "worker", "index": 0}})";
  ASSERT_OK_AND_ASSIGN(auto refused, Subprocess::Start(with_chief));
  ASSERT_OK_AND_ASSIGN(const ProcessEnd refused_end, refused->Wait(kLimit));
  EXPECT_EQ(refused_end.code(), 2);
  EXPECT_THAT(ReadLog(0), HasSubstr("cluster.chief"));
}

}  // namespace
}  // namespace parasol
