// Whole clusters of real processes whose workers and evaluator compute on
// cuda:0, with tasks that are killed, as a CPU plays it
// (third_party/cuda_on_host).

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_reader.h"
#include "storage/checkpoint_store.h"
#include "tests/end_to_end/cuda_jobs.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;
using ::testing::SizeIs;

constexpr char kWithoutGraphs[] = "worker.cuda_graphs=false";
constexpr char kSynchronous[] =
    "parameter_server.synchronous.lost_worker=REASSIGN";

struct JobCase {
  std::string name;
  LaunchedCluster::Options (*on)(const std::string& device);
  std::vector<std::string> overrides = {};
};

void PrintTo(const JobCase& job, std::ostream* out) { *out << job.name; }

LaunchedCluster::Options OptionsOf(const JobCase& job,
                                   const std::string& device) {
  LaunchedCluster::Options options = job.on(device);
  for (const std::string& value : job.overrides) {
    options.overrides.push_back(value);
  }
  return options;
}

bool HasGraphs(const JobCase& job) {
  return std::find(job.overrides.begin(), job.overrides.end(),
                   kWithoutGraphs) == job.overrides.end();
}

// Kills `task` and waits for the process that follows it.
absl::Status Kill(LaunchedCluster& cluster, const std::string& task) {
  const pid_t before = cluster.Tasks()[task];
  RETURN_IF_ERROR(cluster.Signal(task, SIGKILL));
  return WaitUntil("a new " + task, [&] {
    const auto now = cluster.Tasks();
    return now.count(task) != 0 && now.at(task) != before;
  });
}

class CudaClusterTest : public testing::TestWithParam<JobCase> {};

INSTANTIATE_TEST_SUITE_P(
    Jobs, CudaClusterTest,
    testing::Values(JobCase{"Digits", DigitsOn},
                    JobCase{"DigitsWithoutGraphs", DigitsOn, {kWithoutGraphs}},
                    JobCase{"Tables", TablesOn},
                    JobCase{"TablesWithoutGraphs", TablesOn, {kWithoutGraphs}},
                    JobCase{"SynchronousDigits", DigitsOn, {kSynchronous}},
                    JobCase{"SynchronousTables", TablesOn, {kSynchronous}}),
    [](const auto& info) { return info.param.name; });

TEST_P(CudaClusterTest, AJobLearnsWhileAWorkerAndAPsAreKilled) {
  LaunchedCluster::Options options = OptionsOf(GetParam(), "cuda:0");
  // A job that is about to end has no new worker.
  constexpr int kSteps = 2 * kStepsToLearn;
  options.overrides.push_back(absl::StrCat("end.steps=", kSteps));
  ASSERT_OK_AND_ASSIGN(auto cluster, LaunchedCluster::Start(options));
  ASSERT_OK(cluster->AwaitStep(60));
  ASSERT_OK(Kill(*cluster, "worker/1"));
  ASSERT_OK(cluster->AwaitStep(120));
  ASSERT_OK(Kill(*cluster, "ps/1"));
  ASSERT_OK_AND_ASSIGN(const auto result, cluster->Wait());
  ExpectLearned(result, kSteps);
  const std::string log = cluster->LogOf("worker/0");
  EXPECT_THAT(log, HasSubstr("training on cuda:0 (CUDA on the host)"));
  EXPECT_THAT(log, Not(HasSubstr("steps are not recorded")));
  EXPECT_EQ(absl::StrContains(log, "training steps are recorded"),
            HasGraphs(GetParam()));
}

// Values of all variables, and of all rows by "table/id".
struct Weights {
  std::map<std::string, std::vector<float>> values;
};

absl::StatusOr<Weights> WeightsIn(const std::string& checkpoint_dir) {
  const CheckpointStore store(checkpoint_dir);
  ASSIGN_OR_RETURN(const std::optional<int64_t> step, store.NewestComplete());
  if (!step) return absl::NotFoundError("no checkpoint in " + checkpoint_dir);
  ASSIGN_OR_RETURN(const auto reader,
                   CheckpointReader::Open(store.PathOf(*step)));
  Weights weights;
  for (const durable::CheckpointVariable& variable :
       reader->manifest().variable()) {
    size_t size = 1;
    for (const int64_t side : variable.shape()) size *= side;
    std::vector<float>& values = weights.values[variable.name()];
    values.resize(size);
    RETURN_IF_ERROR(reader
                        ->ReadElements(variable.name(), kValueArray, 0,
                                       absl::MakeSpan(values))
                        .status());
  }
  for (const durable::CheckpointTable& table : reader->manifest().table()) {
    RETURN_IF_ERROR(reader->ReadRows(table.name(), [&](const RowBatch& batch) {
      const size_t stride =
          batch.ids.empty() ? 0 : batch.rows.size() / batch.ids.size();
      for (size_t i = 0; i < batch.ids.size(); ++i) {
        const float* const row = batch.rows.data() + i * stride;
        weights.values[absl::StrCat(table.name(), "/", batch.ids[i])].assign(
            row, row + table.width());
      }
      return absl::OkStatus();
    }));
  }
  return weights;
}

absl::StatusOr<Weights> Train(const LaunchedCluster::Options& options) {
  ASSIGN_OR_RETURN(const auto cluster, LaunchedCluster::Start(options));
  ASSIGN_OR_RETURN(const auto result, cluster->Wait());
  ExpectLearned(result, kStepsToLearn);
  return WeightsIn(cluster->checkpoint_dir());
}

class SynchronousCudaClusterTest : public testing::TestWithParam<JobCase> {};

INSTANTIATE_TEST_SUITE_P(
    Jobs, SynchronousCudaClusterTest,
    testing::Values(JobCase{"Digits", DigitsOn, {kSynchronous}},
                    JobCase{"DigitsWithoutGraphs",
                            DigitsOn,
                            {kSynchronous, kWithoutGraphs}},
                    JobCase{"Tables", TablesOn, {kSynchronous}},
                    JobCase{"TablesWithoutGraphs",
                            TablesOn,
                            {kSynchronous, kWithoutGraphs}}),
    [](const auto& info) { return info.param.name; });

TEST_P(SynchronousCudaClusterTest, TheWeightsAreThoseOfTheJobOnCpus) {
  ASSERT_OK_AND_ASSIGN(const Weights cpu, Train(OptionsOf(GetParam(), "cpu")));
  ASSERT_OK_AND_ASSIGN(const Weights cuda,
                       Train(OptionsOf(GetParam(), "cuda:0")));
  ASSERT_THAT(cuda.values, SizeIs(cpu.values.size()));
  for (const auto& [name, values] : cpu.values) {
    ASSERT_EQ(cuda.values.count(name), 1u) << name;
    // Sums in another order, in 300 steps.
    EXPECT_THAT(cuda.values.at(name), Pointwise(FloatNear(1e-5f), values))
        << name;
  }
}

}  // namespace
}  // namespace parasol
