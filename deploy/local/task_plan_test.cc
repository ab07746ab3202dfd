#include "deploy/local/task_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::ElementsAre;

LocalJob TwoByTwo() {
  LocalJob job;
  job.job_file = "/jobs/mnist.textproto";
  job.data_dir = "/data";
  job.checkpoint_dir = "/ckpt";
  job.log_dir = "/ckpt/logs";
  job.bin_dir = "/bin";
  job.device = "cpu";
  job.threads = 3;
  job.num_ps = 2;
  job.num_workers = 2;
  job.overrides = {"end.steps=7", "seed=1"};
  return job;
}

LocalPlan Plan(const LocalJob& job) {
  std::vector<std::string> addresses;
  for (int port = 1; port <= NumAddresses(job); ++port) {
    addresses.push_back(absl::StrCat("127.0.0.1:", port));
  }
  return PlanTasks(job, addresses);
}

TEST(TaskPlanTest, EveryTaskKnowsTheClusterAndItsPlace) {
  const LocalPlan plan = Plan(TwoByTwo());
  std::vector<std::string> names;
  for (const TaskPlan& task : plan.tasks) names.push_back(task.name);
  EXPECT_THAT(names, ElementsAre("chief/0", "ps/0", "ps/1", "worker/0",
                                 "worker/1", "evaluator/0"));
  EXPECT_EQ(plan.chief_address, "127.0.0.1:1");
  EXPECT_EQ(plan.tasks[2].tf_config,
            R"({"cluster":{"chief":["127.0.0.1:1"],)"
            R"("ps":["127.0.0.1:2","127.0.0.1:3"],)"
            R"("worker":["127.0.0.1:4","127.0.0.1:5"]},)"
            R"("task":{"type":"ps","index":1}})");
}

TEST(TaskPlanTest, EachRoleGetsItsFlags) {
  const LocalPlan plan = Plan(TwoByTwo());
  EXPECT_THAT(plan.tasks[0].argv,
              ElementsAre("/bin/chief/chief", "--metrics_address=127.0.0.1:6",
                          "--data_dir=/data", "--job=/jobs/mnist.textproto",
                          "--checkpoint_dir=/ckpt", "--set=end.steps=7",
                          "--set=seed=1"));
  EXPECT_THAT(plan.tasks[1].argv,
              ElementsAre("/bin/ps/ps", "--metrics_address=127.0.0.1:7"));
  EXPECT_THAT(
      plan.tasks[4].argv,
      ElementsAre("/bin/worker/worker", "--metrics_address=127.0.0.1:10",
                  "--data_dir=/data", "--device=cpu", "--threads=3"));
  EXPECT_THAT(
      plan.tasks[5].argv,
      ElementsAre("/bin/evaluator/evaluator", "--metrics_address=127.0.0.1:11",
                  "--data_dir=/data", "--device=cpu", "--threads=3"));
  EXPECT_EQ(plan.tasks[4].log_file, "/ckpt/logs/worker-1.log");
}

TEST(TaskPlanTest, PsTakeWhatAJobThatGoesOnWithNanPushes) {
  LocalJob job = TwoByTwo();
  job.applies_non_finite = true;
  EXPECT_THAT(Plan(job).tasks[2].argv,
              ElementsAre("/bin/ps/ps", "--metrics_address=127.0.0.1:8",
                          "--nonfinite_gradients=apply"));
}

TEST(TaskPlanTest, WorkersEvaluatorAndPsMayBeTheUsersOwn) {
  LocalJob job = TwoByTwo();
  job.worker_binary = "/mine/worker";
  job.evaluator_binary = "/mine/evaluator";
  const LocalPlan plan = Plan(job);
  EXPECT_EQ(plan.tasks[0].argv[0], "/bin/chief/chief");
  EXPECT_EQ(plan.tasks[1].argv[0], "/bin/ps/ps");
  EXPECT_EQ(plan.tasks[3].argv[0], "/mine/worker");
  EXPECT_EQ(plan.tasks[4].argv[0], "/mine/worker");
  EXPECT_EQ(plan.tasks[5].argv[0], "/mine/evaluator");
  job.ps_binary = "/mine/ps";
  EXPECT_EQ(Plan(job).tasks[2].argv[0], "/mine/ps");
}

TEST(TaskPlanTest, EvaluatorCanBeLeftOut) {
  LocalJob job = TwoByTwo();
  job.has_evaluator = false;
  EXPECT_EQ(Plan(job).tasks.back().name, "worker/1");
}

TEST(TaskPlanTest, WithoutPsTheFirstWorkerHasTheJob) {
  LocalJob job = TwoByTwo();
  job.num_ps = 0;
  job.strategy = "multi_worker_mirrored";
  job.checkpoint_timeout = "5m";
  const LocalPlan plan = Plan(job);
  std::vector<std::string> names;
  for (const TaskPlan& task : plan.tasks) names.push_back(task.name);
  EXPECT_THAT(names, ElementsAre("worker/0", "worker/1", "evaluator/0"));
  EXPECT_EQ(plan.chief_address, "127.0.0.1:1");
  EXPECT_EQ(plan.tasks[1].tf_config,
            R"({"cluster":{"worker":["127.0.0.1:1","127.0.0.1:2"]},)"
            R"("task":{"type":"worker","index":1}})");
  EXPECT_THAT(
      plan.tasks[0].argv,
      ElementsAre("/bin/worker/worker", "--metrics_address=127.0.0.1:3",
                  "--data_dir=/data", "--device=cpu", "--threads=3",
                  "--job=/jobs/mnist.textproto", "--checkpoint_dir=/ckpt",
                  "--checkpoint_timeout=5m", "--strategy=multi_worker_mirrored",
                  "--set=end.steps=7", "--set=seed=1",
                  "--chief_binary=/bin/chief/chief"));
  EXPECT_THAT(plan.tasks[1].argv,
              ElementsAre("/bin/worker/worker", "--metrics_address=127.0.0.1:4",
                          "--data_dir=/data", "--device=cpu", "--threads=3"));
  EXPECT_TRUE(plan.tasks[0].leads_job);
  EXPECT_FALSE(plan.tasks[1].leads_job);
}

TEST(TaskPlanTest, WorkersThatHaveVariablesBesidePsAreToldSo) {
  LocalJob job = TwoByTwo();
  job.is_hybrid = true;
  const LocalPlan plan = Plan(job);
  for (const TaskPlan& task : plan.tasks) {
    EXPECT_EQ(
        std::count(task.argv.begin(), task.argv.end(), "--strategy=hybrid"),
        task.role == "worker")
        << task.name;
  }
}

TEST(TaskPlanTest, TheChiefLeadsTheJobWhereThereIsOne) {
  const LocalPlan plan = Plan(TwoByTwo());
  EXPECT_TRUE(plan.tasks[0].leads_job);
  for (size_t i = 1; i < plan.tasks.size(); ++i) {
    EXPECT_FALSE(plan.tasks[i].leads_job);
  }
}

// One worker without TF_CONFIG has the job, and answers for its status.
TEST(TaskPlanTest, AStrategyOfOneProcessHasOneTask) {
  LocalJob job = TwoByTwo();
  job.is_alone = true;
  job.strategy = "mirrored";
  job.checkpoint_timeout = "5m";
  const LocalPlan plan = Plan(job);
  EXPECT_EQ(plan.chief_address, "127.0.0.1:1");
  ASSERT_THAT(plan.tasks, testing::SizeIs(1));
  const TaskPlan& task = plan.tasks[0];
  EXPECT_EQ(task.name, "worker/0");
  EXPECT_TRUE(task.leads_job);
  EXPECT_EQ(task.tf_config, "");
  EXPECT_THAT(
      task.argv,
      ElementsAre("/bin/worker/worker", "--metrics_address=127.0.0.1:2",
                  "--status_address=127.0.0.1:1", "--data_dir=/data",
                  "--device=cpu", "--threads=3", "--job=/jobs/mnist.textproto",
                  "--checkpoint_dir=/ckpt", "--checkpoint_timeout=5m",
                  "--strategy=mirrored", "--set=end.steps=7", "--set=seed=1"));
}

}  // namespace
}  // namespace parasol
