#include "cluster/job/task/task_job.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kJob[] = R"(
model { input_shape: [1] layer { dense { units: 1 } }
        loss { mean_squared_error {} } }
train { csv { file: "f" column: ["x", "y"] label { column: "y" } }
        batch_size: 10 }
optimizer { sgd {} }
end { epochs: 2 }
)";

constexpr char kChief[] = R"({"cluster": {"chief": ["c:1"], "ps": ["p:1"],
    "worker": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}})";
constexpr char kAlone[] = R"({"cluster": {"worker": ["a:1", "b:1"]},
    "task": {"type": "worker", "index": 0}})";

// The faults of kJob with `overrides` for a task, without the job's path.
std::vector<std::string> FaultsIn(const char* tf_config, Role role,
                                  const std::vector<std::string>& overrides,
                                  const std::string& device = "auto") {
  const std::string path = testing::TempDir() + "/task_job.textproto";
  std::ofstream(path) << kJob;
  const absl::StatusOr<TaskConfig> config =
      ParseTfConfig(tf_config, role, std::nullopt);
  EXPECT_OK(config);
  const absl::StatusOr<CheckedJob> checked = CheckTaskJob(
      {.path = path, .overrides = overrides, .device = device}, config);
  EXPECT_OK(checked);
  std::vector<std::string> lines;
  for (const JobFault& fault : checked->faults()) {
    lines.push_back(fault.message);
  }
  return lines;
}

TEST(TaskJobTest, AJobThatTheClusterTrainsHasNoFault) {
  EXPECT_THAT(FaultsIn(kChief, Role::kChief, {}), IsEmpty());
  EXPECT_THAT(FaultsIn(kAlone, Role::kWorker, {}), IsEmpty());
  EXPECT_THAT(
      FaultsIn(kAlone, Role::kWorker, {"strategy.multi_worker_mirrored={}"}),
      IsEmpty());
  EXPECT_THAT(FaultsIn("", Role::kWorker, {}), IsEmpty());
}

TEST(TaskJobTest, AStrategyThatTheClusterHasNotIsAFault) {
  for (const char* strategy :
       {"mirrored", "central_storage", "one_device", "default"}) {
    EXPECT_THAT(FaultsIn(kChief, Role::kChief,
                         {absl::StrCat("strategy.", strategy, "={}")}),
                ElementsAre(StartsWith(absl::StrCat(
                    "strategy.", strategy, " trains in one process"))));
  }
  EXPECT_THAT(
      FaultsIn(kChief, Role::kChief, {"strategy.hybrid={}"}),
      ElementsAre(StartsWith("strategy.hybrid: the model has no sparse")));
  EXPECT_THAT(
      FaultsIn(kChief, Role::kChief, {"strategy.multi_worker_mirrored={}"}),
      ElementsAre(
          StartsWith("strategy.multi_worker_mirrored: the cluster has 1 ps")));
  EXPECT_THAT(FaultsIn(kAlone, Role::kWorker, {"strategy.parameter_server={}"}),
              ElementsAre(StartsWith(
                  "strategy.parameter_server: the cluster has no ps")));
  EXPECT_THAT(
      FaultsIn("", Role::kWorker, {"strategy.mirrored={device: \"tpu:0\"}"}),
      ElementsAre(StartsWith("strategy.mirrored.device[0]: \"tpu:0\"")));
}

TEST(TaskJobTest, AGlobalBatchThatTheReplicasCannotShareIsAFault) {
  const auto is_fault = [](int replicas) {
    return ElementsAre(
        StartsWith(absl::StrCat("train.global_batch_size: 10 examples can't be "
                                "split into ",
                                replicas, " replicas")));
  };
  const std::string of_ten =
      "train={csv {file: \"f\" column: [\"x\", \"y\"] "
      "label {column: \"y\"}} global_batch_size: 10}";
  EXPECT_THAT(FaultsIn(kChief, Role::kChief,
                       {of_ten,
                        "parameter_server.synchronous={total_replicas: 3 "
                        "replicas_to_aggregate: 3}"}),
              is_fault(3));
  EXPECT_THAT(FaultsIn(kAlone, Role::kWorker,
                       {of_ten,
                        "strategy.multi_worker_mirrored={device: \"cpu:0\" "
                        "device: \"cpu:1\"}"}),
              is_fault(4));
  EXPECT_THAT(FaultsIn("", Role::kWorker,
                       {of_ten,
                        "strategy.mirrored={device: \"cpu:0\" device: "
                        "\"cpu:1\" device: \"cpu:2\"}"}),
              is_fault(3));
  // A number that is none is named as that.
  EXPECT_THAT(
      FaultsIn(kChief, Role::kChief,
               {of_ten, "parameter_server.synchronous.total_replicas=0"}),
      testing::Contains(AllOf(HasSubstr("total_replicas"), HasSubstr("0"))));
}

TEST(TaskJobTest, HybridNeedsWorkerZero) {
  job::Job job;
  job.mutable_strategy()->mutable_hybrid();
  job.mutable_model()->add_sparse_table()->set_name("t");
  ASSERT_OK_AND_ASSIGN(
      const TaskConfig config,
      ParseTfConfig(R"({"cluster": {"chief": ["c:1"], "ps": ["p:1"],
                        "worker": {"1": "b:1"}},
                        "task": {"type": "chief", "index": 0}})",
                    Role::kChief, std::nullopt));
  EXPECT_THAT(FitToCluster(config, 1, job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cluster.worker: no worker/0")));
}

TEST(TaskJobTest, ATaskWithoutAPlaceHasTheJobsOwnFaults) {
  EXPECT_THAT(CheckTaskJob({.path = "/no/such/job"},
                           absl::InvalidArgumentError("no place")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such")));
}

}  // namespace
}  // namespace parasol
