// Workers of a cluster without ps whose gradients NCCL adds between their
// devices, as processes and as a CPU plays it (third_party/cuda_on_host).

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/cluster_runs.h"
#include "tests/end_to_end/cuda_jobs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

constexpr int kSteps = 150;
// Steps of tables are faster: a worker is lost long before the last one.
constexpr int kTableSteps = 600;
// The jobs' variables are two and three packs.
constexpr char kPacks[] = "bytes_per_pack: 60";
constexpr int kPacksOfDigits = 2;

// `job`: on cuda:0.
LaunchedCluster::Options WorkersOf(LaunchedCluster::Options job,
                                   const std::string& communication,
                                   int workers, int steps) {
  job.num_workers = workers;
  job.overrides = {absl::StrCat("end.steps=", steps),
                   absl::StrCat("strategy.multi_worker_mirrored={", kPacks,
                                " communication: ", communication, "}")};
  return job;
}

LaunchedCluster::Options WorkersOn(const std::string& device,
                                   const std::string& communication,
                                   int workers, int steps) {
  return WorkersOf(DigitsOn(device), communication, workers, steps);
}

Trained TrainedIn(const LaunchedCluster& cluster, int steps) {
  const CheckpointStore store(cluster.checkpoint_dir());
  auto reader = CheckpointReader::Open(store.PathOf(steps));
  EXPECT_OK(reader);
  return reader.ok() ? ReadTrained(**reader) : Trained();
}

void ExpectNear(const Trained& got, const Trained& want) {
  ASSERT_FALSE(want.variables.empty());
  for (const auto& [name, values] : want.variables) {
    ASSERT_TRUE(got.variables.contains(name)) << name;
    EXPECT_THAT(got.variables.at(name), Pointwise(FloatNear(1e-5), values))
        << name;
  }
}

// NCCL's order of three addends is another one in each part of an array.
TEST(CudaWorkersTest, WithNcclTheyEndAsWithSumsOfTheHost) {
  ASSERT_OK_AND_ASSIGN(auto host, LaunchedCluster::Start(
                                      WorkersOn("cuda:0", "AUTO", 3, kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto by_host, host->Wait());
  ASSERT_EQ(by_host.exit_code, 0) << by_host.progress;
  ASSERT_OK_AND_ASSIGN(auto nccl, LaunchedCluster::Start(
                                      WorkersOn("cuda:0", "NCCL", 3, kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto by_nccl, nccl->Wait());
  ASSERT_EQ(by_nccl.exit_code, 0) << by_nccl.progress;
  ExpectNear(TrainedIn(*nccl, kSteps), TrainedIn(*host, kSteps));
  EXPECT_THAT(nccl->LogOf("worker/1"),
              AllOf(HasSubstr("strategy multi_worker_mirrored, NCCL"),
                    HasSubstr("NCCL adds gradients on cuda:0"),
                    HasSubstr("the variables are on cuda:0"),
                    Not(HasSubstr("group has ended"))));
}

// Runs the job to its end, and returns what it has trained.
Trained TrainedBy(const LaunchedCluster::Options& options, int steps) {
  const auto cluster = LaunchedCluster::Start(options);
  EXPECT_OK(cluster);
  if (!cluster.ok()) return {};
  const auto result = (*cluster)->Wait();
  EXPECT_OK(result);
  if (!result.ok()) return {};
  EXPECT_EQ(result->exit_code, 0) << result->progress;
  return TrainedIn(**cluster, steps);
}

// With two replicas NCCL adds in the host's order, also when one worker
// computes both.
TEST(CudaWorkersTest, TwoWithTablesEndWithTheBitsOfTheHostAlsoAfterALoss) {
  const auto options = [](const std::string& communication) {
    return WorkersOf(TablesOn("cuda:0"), communication, 2, kTableSteps);
  };
  const Trained want = TrainedBy(options("AUTO"), kTableSteps);
  ASSERT_EQ(want.tables.size(), 2);
  ASSERT_OK_AND_ASSIGN(auto nccl, LaunchedCluster::Start(options("NCCL")));
  ASSERT_OK(nccl->AwaitStep(40));
  ASSERT_OK(nccl->Signal("worker/1", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result, nccl->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_EQ(TrainedIn(*nccl, kTableSteps), want);
  EXPECT_THAT(nccl->LogOf("worker/0"),
              AllOf(ContainsRegex("NCCL adds gradients on .*, rank [01] of 2"),
                    HasSubstr("the variables are in host memory, and are "
                              "updated there: the model has sparse tables"),
                    HasSubstr("group has ended: worker/1, ")));
}

// Micro-batches are added up on the device, in the host's order. Batches of 32
// are cut into parts of 10 and 11.
TEST(CudaWorkersTest, TwoWithMicroBatchesEndWithTheBitsOfTheHost) {
  const struct {
    LaunchedCluster::Options (*on)(const std::string& device);
    int steps;
  } kJobs[] = {{DigitsOn, kSteps}, {TablesOn, kTableSteps}};
  for (const auto& job : kJobs) {
    SCOPED_TRACE(job.steps);
    const auto options = [&job](const std::string& communication) {
      LaunchedCluster::Options options =
          WorkersOf(job.on("cuda:0"), communication, 2, job.steps);
      options.overrides.push_back("train.micro_batch_size=11");
      return options;
    };
    const Trained want = TrainedBy(options("AUTO"), job.steps);
    ASSERT_FALSE(want.variables.empty());
    ASSERT_OK_AND_ASSIGN(auto nccl, LaunchedCluster::Start(options("NCCL")));
    ASSERT_OK(nccl->AwaitStep(40));
    ASSERT_OK(nccl->Signal("worker/1", SIGKILL));
    ASSERT_OK_AND_ASSIGN(const auto result, nccl->Wait());
    ASSERT_EQ(result.exit_code, 0) << result.progress;
    EXPECT_EQ(TrainedIn(*nccl, job.steps), want);
    EXPECT_THAT(nccl->LogOf("worker/0"),
                AllOf(HasSubstr("NCCL adds gradients on cuda:0"),
                      HasSubstr("group has ended: worker/1, ")));
  }
}

TEST(CudaWorkersTest, WithoutATrainedVariableNcclHasNothingToAdd) {
  constexpr int kFewSteps = 50;
  const auto options = [](const std::string& communication) {
    LaunchedCluster::Options options =
        WorkersOf(TablesOn("cuda:0"), communication, 2, kFewSteps);
    options.overrides.insert(
        options.overrides.end(),
        {"model.layer[0].embedding_bag.use_bias=false",
         "model.layer[2].trainable=false", "model.layer[3].trainable=false"});
    return options;
  };
  const Trained want = TrainedBy(options("AUTO"), kFewSteps);
  ASSERT_EQ(want.tables.size(), 2);
  ASSERT_OK_AND_ASSIGN(auto nccl, LaunchedCluster::Start(options("NCCL")));
  ASSERT_OK_AND_ASSIGN(const auto result, nccl->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_EQ(TrainedIn(*nccl, kFewSteps), want);
  EXPECT_THAT(nccl->LogOf("worker/1"),
              HasSubstr("NCCL has nothing to add: no variable is trained"));
}

LaunchedCluster::Options HybridOn(const std::string& device,
                                  const std::string& communication, int steps) {
  LaunchedCluster::Options options = TablesOn(device);
  options.num_ps = 1;
  options.overrides = {absl::StrCat("end.steps=", steps),
                       absl::StrCat("strategy.hybrid.all_reduce={", kPacks,
                                    " communication: ", communication, "}")};
  return options;
}

TEST(CudaWorkersTest, HybridHasTheBitsOfTheHostAlsoAfterALoss) {
  const Trained want =
      TrainedBy(HybridOn("cuda:0", "AUTO", kTableSteps), kTableSteps);
  ASSERT_EQ(want.tables.size(), 2);
  ASSERT_OK_AND_ASSIGN(auto nccl, LaunchedCluster::Start(
                                      HybridOn("cuda:0", "NCCL", kTableSteps)));
  ASSERT_OK(nccl->AwaitStep(40));
  ASSERT_OK(nccl->Signal("worker/1", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result, nccl->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_EQ(TrainedIn(*nccl, kTableSteps), want);
  EXPECT_THAT(nccl->LogOf("worker/0"),
              AllOf(HasSubstr("strategy hybrid, NCCL"),
                    ContainsRegex("NCCL adds gradients on .*, rank [01] of 2"),
                    HasSubstr("group has ended: worker/1, ")));
}

// Its rows' gradients of the step are pushed again, and no others are.
TEST(CudaWorkersTest, UnderHybridAPsThatIsKilledIsReplaced) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(HybridOn(
                                         "cuda:0", "NCCL", kTableSteps)));
  ASSERT_OK(cluster->AwaitStep(60));
  ASSERT_OK(cluster->Signal("ps/0", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, kTableSteps);
}

TEST(CudaWorkersTest, HybridNamesADeviceThatNcclCannotUse) {
  ASSERT_OK_AND_ASSIGN(auto cluster,
                       LaunchedCluster::Start(HybridOn("cpu", "NCCL", kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto refused, cluster->Wait());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.progress,
              HasSubstr("strategy.hybrid.all_reduce.communication: NCCL sums "
                        "between CUDA devices, and cpu (1 thread) is none"));
}

// A worker's list may have processors and CUDA devices: they train the bits
// that one process trains with as many of both.
TEST(CudaWorkersTest, AWorkersDevicesMayBeOfBothKinds) {
  constexpr int kFewSteps = 60;
  LaunchedCluster::Options one = WorkersOn("auto", "AUTO", 1, kFewSteps);
  one.overrides.back() =
      "strategy.central_storage={ device: 'cpu:0' device: 'cuda:0' "
      "device: 'cpu:1' device: 'cuda:1' }";
  LaunchedCluster::Options two = WorkersOn("auto", "AUTO", 2, kFewSteps);
  two.overrides.back() =
      "strategy.multi_worker_mirrored={ device: 'cpu:0' device: 'cuda:0' }";
  const Trained want = TrainedBy(one, kFewSteps);
  ASSERT_FALSE(want.variables.empty());
  EXPECT_EQ(TrainedBy(two, kFewSteps), want);
}

// Two workers with two devices each. With sums of the host they train the bits
// that one process trains with four devices; with NCCL, where each device is a
// rank, values near them; also when a worker is killed.
TEST(CudaWorkersTest, SeveralDevicesInEachWorkerAreRanksOfTheirOwn) {
  const auto options = [](const std::string& communication, int steps) {
    LaunchedCluster::Options options =
        WorkersOn("auto", communication, 2, steps);
    options.overrides.back() =
        absl::StrCat("strategy.multi_worker_mirrored={", kPacks,
                     " communication: ", communication,
                     " device: 'cuda:0' device: '/gpu:1'}");
    return options;
  };
  LaunchedCluster::Options one = WorkersOn("auto", "AUTO", 1, kSteps);
  one.overrides = {absl::StrCat("end.steps=", kSteps),
                   "strategy.central_storage={ device: 'cuda:0' device: "
                   "'cuda:1' device: 'cuda:2' device: 'cuda:3' }"};
  ASSERT_OK_AND_ASSIGN(auto alone, LaunchedCluster::Start(one));
  ASSERT_OK_AND_ASSIGN(const auto by_one, alone->Wait());
  ASSERT_EQ(by_one.exit_code, 0) << by_one.progress;

  ASSERT_OK_AND_ASSIGN(auto host,
                       LaunchedCluster::Start(options("AUTO", kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto by_host, host->Wait());
  ASSERT_EQ(by_host.exit_code, 0) << by_host.progress;
  EXPECT_EQ(TrainedIn(*host, kSteps), TrainedIn(*alone, kSteps));

  ASSERT_OK_AND_ASSIGN(auto nccl,
                       LaunchedCluster::Start(options("NCCL", kSteps)));
  ASSERT_OK(nccl->AwaitStep(40));
  ASSERT_OK(nccl->Signal("worker/1", SIGKILL));
  ASSERT_OK_AND_ASSIGN(const auto by_nccl, nccl->Wait());
  ASSERT_EQ(by_nccl.exit_code, 0) << by_nccl.progress;
  ExpectNear(TrainedIn(*nccl, kSteps), TrainedIn(*host, kSteps));
  EXPECT_THAT(nccl->LogOf("worker/1"),
              AllOf(HasSubstr("NCCL adds gradients on cuda:0"),
                    HasSubstr("NCCL adds gradients on cuda:1"),
                    ContainsRegex(", rank [0-3] of 4")));
}

TEST(CudaWorkersTest, AKilledWorkerEndsTheSumOfAllAndTheJobGoesOn) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(WorkersOn(
                                         "cuda:0", "NCCL", 3, 2 * kSteps)));
  ASSERT_OK(cluster->AwaitStep(40));
  const auto before = cluster->Tasks();
  ASSERT_OK(cluster->Signal("worker/1", SIGKILL));
  ASSERT_OK(WaitUntil("a new worker/1", [&] {
    const auto now = cluster->Tasks();
    return now.contains("worker/1") &&
           now.at("worker/1") != before.at("worker/1");
  }));
  const auto after = cluster->Tasks();
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 2 * kSteps);
  for (const char* survivor : {"worker/0", "worker/2"}) {
    EXPECT_EQ(after.at(survivor), before.at(survivor));
    EXPECT_THAT(cluster->LogOf(survivor),
                HasSubstr("the workers' group has ended: worker/1, "));
  }
}

// A worker whose first process gets `signal` when it begins the second pack of
// a step, of which the first is on its way.
LaunchedCluster::Options WithSignalBetweenPacks(int signal, int steps) {
  LaunchedCluster::Options options = WorkersOn("cuda:0", "NCCL", 2, steps);
  options.flags.push_back(absl::StrCat(
      "--worker_binary=",
      WorkerWithFault(
          absl::StrCat("ncclAllReduce=-", signal, "@", 40 * kPacksOfDigits + 2),
          /*only_first=*/true)));
  return options;
}

// The other worker makes the step again, with the gradients that it has.
TEST(CudaWorkersTest, AWorkerThatIsKilledBetweenTwoPacksChangesNoBits) {
  const Trained want =
      TrainedBy(WorkersOn("cuda:0", "AUTO", 2, 2 * kSteps), 2 * kSteps);
  ASSERT_FALSE(want.variables.empty());
  ASSERT_OK_AND_ASSIGN(
      auto cluster,
      LaunchedCluster::Start(WithSignalBetweenPacks(SIGKILL, 2 * kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ASSERT_EQ(result.exit_code, 0) << result.progress;
  EXPECT_EQ(TrainedIn(*cluster, 2 * kSteps), want);
  EXPECT_THAT(cluster->LogOf("worker/0"),
              HasSubstr("group has ended: worker/1, "));
}

TEST(CudaWorkersTest, AWorkerThatStandsStillBetweenTwoPacksIsDoneWithout) {
  ASSERT_OK_AND_ASSIGN(
      auto cluster,
      LaunchedCluster::Start(WithSignalBetweenPacks(SIGSTOP, 4 * kSteps)));
  ASSERT_OK(cluster->AwaitStep(80));
  EXPECT_THAT(cluster->LogOf("worker/0"), HasSubstr("group has ended"));
  ASSERT_OK(cluster->Signal("worker/1", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 4 * kSteps);
}

TEST(CudaWorkersTest, AWorkerThatStandsStillIsDoneWithout) {
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(WorkersOn(
                                         "cuda:0", "NCCL", 2, 4 * kSteps)));
  ASSERT_OK(cluster->AwaitStep(40));
  ASSERT_OK(cluster->Signal("worker/1", SIGSTOP));
  ASSERT_OK_AND_ASSIGN(const auto stopped, cluster->Status());
  ASSERT_OK(cluster->AwaitStep(stopped.global_step() + 40));
  EXPECT_THAT(cluster->LogOf("worker/0"), HasSubstr("group has ended"));
  ASSERT_OK(cluster->Signal("worker/1", SIGCONT));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, 4 * kSteps);
}

TEST(CudaWorkersTest, AJobForNcclEndsInOneLineWhereItIsNot) {
  LaunchedCluster::Options options = WorkersOn("cuda:0", "NCCL", 2, kSteps);
  options.flags.push_back(
      absl::StrCat("--worker_binary=",
                   WorkerWithFault("libnccl.so.2=1", /*only_first=*/false)));
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.progress,
              HasSubstr("strategy.multi_worker_mirrored.communication: NCCL "
                        "cannot be opened: libnccl.so.2: not on this machine; "
                        "give each worker --device=cuda:N and NCCL 2, or "
                        "choose AUTO"));

  ASSERT_OK_AND_ASSIGN(
      auto on_cpu, LaunchedCluster::Start(WorkersOn("cpu", "NCCL", 2, kSteps)));
  ASSERT_OK_AND_ASSIGN(const auto refused, on_cpu->Wait());
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.progress,
              HasSubstr("NCCL sums between CUDA devices, and cpu (1 thread) "
                        "is none"));
}

}  // namespace
}  // namespace parasol
