#include "tool/status/status_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

wire::JobStatus Training(int64_t step) {
  wire::JobStatus status;
  status.set_phase(wire::TRAINING);
  status.set_global_step(step);
  status.set_end_step(1000);
  status.set_run_id("0123");
  status.set_examples_per_second(640);
  status.set_loss(0.5);
  status.set_checkpoint("/ckpt/ckpt-000000000100");
  for (const char* role : {"chief", "ps", "worker"}) {
    wire::TaskStatus& task = *status.add_task();
    task.mutable_task()->set_role(role);
    task.set_address(std::string(role) + ":1");
    task.set_alive(true);
  }
  return status;
}

TEST(StatusReportTest, OneAnswerIsDescribed) {
  StatusReport report;
  report.Observe(Training(120),
                 {.newest = EvaluationLine{.global_step = 100,
                                           .metrics = {{"accuracy", 0.75}},
                                           .loss = 0.4}},
                 absl::FromUnixSeconds(0));
  EXPECT_THAT(report.ToText(),
              AllOf(HasSubstr("job         training: step 120/1,000 (12 %)"),
                    HasSubstr("accuracy 75.00 % at step 100"),
                    HasSubstr("640 examples/s"),
                    HasSubstr("checkpoint  /ckpt/ckpt-000000000100\n"),
                    HasSubstr("ps/0        alive      ps:1\n"),
                    Not(HasSubstr("steps/s")), Not(HasSubstr("since"))));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["phase"], "TRAINING");
  EXPECT_EQ(json["global_step"], 120);
  EXPECT_TRUE(json["steps_per_second"].is_null());
  EXPECT_EQ(json["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(json["tasks"][2]["task"], "worker/0");
  EXPECT_EQ(json["tasks"][2]["state"], "alive");
  EXPECT_FALSE(report.IsOver());
}

TEST(StatusReportTest, SeveralAnswersHaveARateAndTimes) {
  StatusReport report;
  report.Observe(Training(100), {}, absl::FromUnixSeconds(0));
  wire::JobStatus lost = Training(120);
  lost.mutable_task(1)->set_alive(false);
  lost.add_missing_task("ps/0");
  lost.set_trouble("the disk is full");
  report.Observe(lost, {}, absl::FromUnixSeconds(2));
  lost.set_global_step(130);
  report.Observe(lost, {}, absl::FromUnixSeconds(3));
  EXPECT_THAT(report.ToText(),
              AllOf(HasSubstr("rate        10 steps/s\n"),
                    HasSubstr("ps/0        missing    since 1s ps:1\n"),
                    HasSubstr("waits for   ps/0\n"),
                    HasSubstr("trouble     the disk is full\n")));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["steps_per_second"], 10);
  EXPECT_EQ(json["tasks"][1]["seconds_in_state"], 1);
  EXPECT_TRUE(json["tasks"][0]["seconds_in_state"].is_null());
}

TEST(StatusReportTest, TheBestEvaluationAndTheLagAreThere) {
  StatusReport report;
  wire::JobStatus status = Training(900);
  status.set_evaluated_step(500);
  status.set_due_evaluations(4);
  const BestCheckpoint best = {.path = "/ckpt/ckpt-000000000300",
                               .global_step = 300,
                               .metric = "auc",
                               .value = 0.75};
  report.Observe(status, {.best = best}, absl::FromUnixSeconds(0));
  EXPECT_THAT(
      report.ToText(),
      AllOf(HasSubstr("evaluated   to step 500, 4 due without a result\n"),
            HasSubstr("best        auc 0.7500 at step 300, "
                      "/ckpt/ckpt-000000000300\n")));
  nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["best"]["global_step"], 300);
  EXPECT_EQ(json["evaluated_step"], 500);
  EXPECT_EQ(json["due_evaluations"], 4);
  EXPECT_TRUE(json["awaited_evaluation"].is_null());
  status.set_awaited_evaluation(600);
  report.Observe(status, {}, absl::FromUnixSeconds(1));
  EXPECT_THAT(report.ToText(),
              HasSubstr("without a result, the job waits for that of step "
                        "600\n"));
}

TEST(StatusReportTest, AWorkerThatHoldsUpOthersIsNamed) {
  StatusReport report;
  wire::JobStatus status = Training(100);
  status.add_awaited_task("worker/0");
  report.Observe(status, {}, absl::FromUnixSeconds(0));
  EXPECT_THAT(report.ToText(), AllOf(HasSubstr("awaited     worker/0\n"),
                                     HasSubstr("worker/0    awaited ")));
}

TEST(StatusReportTest, TwoProcessesOfOneTaskAreNamed) {
  StatusReport report;
  wire::JobStatus status = Training(100);
  status.mutable_task(2)->set_doubled("two processes run as it: a, b");
  report.Observe(status, {}, absl::FromUnixSeconds(0));
  EXPECT_THAT(
      report.ToText(),
      HasSubstr("doubled     worker/0: two processes run as it: a, b\n"));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["tasks"][2]["doubled"], "two processes run as it: a, b");
}

TEST(StatusReportTest, ASlowWorkerAndAnAbsentOneAreNamed) {
  StatusReport report;
  wire::JobStatus status = Training(100);
  wire::TaskStatus& worker = *status.mutable_task(2);
  worker.set_slow("30 ms a batch, 3.0 times the others' 10 ms (compute 95 %)");
  worker.mutable_silence()->set_nanos(500'000'000);
  wire::WorkerPace& pace = *worker.mutable_pace();
  pace.set_steps_per_second(12.5);
  pace.mutable_step()->mutable_compute()->set_nanos(75'000'000);
  pace.mutable_step()->mutable_push()->set_nanos(5'000'000);
  pace.mutable_batch()->set_nanos(80'000'000);
  pace.set_slowness(3);
  wire::AbsentTask& absent = *status.add_absent_task();
  absent.set_task("worker/1");
  absent.mutable_absent()->set_seconds(42);
  report.Observe(status, {}, absl::FromUnixSeconds(0));
  EXPECT_THAT(
      report.ToText(),
      AllOf(HasSubstr("slow        worker/0: 30 ms a batch, 3.0 times the "),
            HasSubstr("without     worker/1, not come for 42s\n"),
            HasSubstr("worker/0    slow       worker:1  12.5 steps/s: input 0 "
                      "ms, pull 0 ms, compute 75 ms, push 5 ms, wait 0 ms\n")));
  const nlohmann::json json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["tasks"][2]["state"], "slow");
  EXPECT_EQ(json["tasks"][2]["slow"], worker.slow());
  EXPECT_EQ(json["tasks"][2]["seconds_since_heard"], .5);
  EXPECT_EQ(json["tasks"][2]["pace"]["steps_per_second"], 12.5);
  EXPECT_EQ(json["tasks"][2]["pace"]["slowness"], 3);
  EXPECT_EQ(json["tasks"][2]["pace"]["step_seconds"]["compute"], .075);
  EXPECT_TRUE(json["tasks"][1]["pace"].is_null());
  EXPECT_EQ(json["absent_tasks"][0]["task"], "worker/1");
  EXPECT_EQ(json["absent_tasks"][0]["seconds"], 42);
}

TEST(StatusReportTest, AFailedJobSaysWhyAndIsOver) {
  StatusReport report;
  wire::JobStatus status = Training(100);
  status.set_phase(wire::FAILED);
  status.set_failure("worker/0: the loss is not finite");
  report.Observe(status, {}, absl::FromUnixSeconds(0));
  EXPECT_THAT(
      report.ToText(),
      HasSubstr("job         failed: worker/0: the loss is not finite"));
  EXPECT_TRUE(report.IsOver());
}

TEST(StatusReportTest, ALineComesWhenSomethingHasChanged) {
  StatusReport report;
  wire::JobStatus status = Training(100);
  wire::Finding& finding = *status.add_finding();
  finding.set_kind(wire::Finding::COMPUTE);
  finding.set_text("nobody, compute");
  report.Observe(status, {}, absl::FromUnixSeconds(0));
  EXPECT_THAT(report.TakeChange(),
              AllOf(HasSubstr("training: step 100/1,000"),
                    HasSubstr("; bound by nobody, compute\n")));
  status.set_global_step(120);
  finding.set_text("nobody, compute: 80 %");
  report.Observe(status, {}, absl::FromUnixSeconds(2));
  EXPECT_EQ(report.TakeChange(), "");
  status.mutable_task(1)->set_alive(false);
  report.Observe(status, {}, absl::FromUnixSeconds(4));
  EXPECT_THAT(report.TakeChange(), HasSubstr("; ps/0 not there"));
  EXPECT_EQ(report.TakeChange(), "");
  finding.set_kind(wire::Finding::INPUT);
  report.Observe(status, {}, absl::FromUnixSeconds(6));
  EXPECT_THAT(report.TakeChange(), HasSubstr("bound by"));
}

}  // namespace
}  // namespace parasol
