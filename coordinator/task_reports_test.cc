#include "coordinator/task_reports.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

wire::Task Worker(uint64_t incarnation) {
  wire::Task task;
  task.set_role("worker");
  task.set_index(0);
  task.set_incarnation(incarnation);
  return task;
}

wire::TaskStatus Described(const TaskReports& reports, const wire::Task& task) {
  wire::TaskStatus status;
  reports.Describe(TaskId::Of(task), task.incarnation(),
                   {.shards = {"ps/0", "ps/4"}, .workers = {{9, "worker/3"}}},
                   status);
  return status;
}

TEST(TaskReportsTest, WhatAProcessSaysEndsWithTheProcess) {
  TaskReports reports;
  wire::RegisterRequest request;
  *request.mutable_task() = Worker(1);
  request.set_version("1.2");
  reports.Begin(request);
  EXPECT_EQ(Described(reports, Worker(1)).version(), "1.2");
  EXPECT_EQ(Described(reports, Worker(2)).version(), "");
}

TEST(TaskReportsTest, AProcessThatGetsItsPlaceBackIsDescribedAsBefore) {
  TaskReports reports;
  wire::RegisterRequest request;
  for (const int process : {1, 2}) {
    *request.mutable_task() = Worker(process);
    request.set_version(process == 1 ? "1.2" : "1.3");
    request.set_process(process == 1 ? "pod-a" : "pod-b");
    reports.Begin(request);
  }
  EXPECT_EQ(Described(reports, Worker(1)).version(), "1.2");
  EXPECT_EQ(Described(reports, Worker(2)).version(), "1.3");
  wire::HeartbeatRequest heartbeat;
  *heartbeat.mutable_task() = Worker(1);
  heartbeat.add_ps_wait()->set_shard(1);
  reports.Keep(heartbeat);
  const wire::TaskStatus status = Described(reports, Worker(1));
  EXPECT_EQ(status.version(), "1.2");
  EXPECT_EQ(status.process(), "pod-a");
  EXPECT_EQ(status.ps_wait_size(), 1);
}

TEST(TaskReportsTest, PsAreNamedByTheirPlaces) {
  TaskReports reports;
  wire::HeartbeatRequest request;
  *request.mutable_task() = Worker(1);
  request.add_ps_wait()->set_shard(1);
  for (const int unknown : {-1, 2}) request.add_ps_wait()->set_shard(unknown);
  reports.Keep(request);
  const wire::TaskStatus status = Described(reports, Worker(1));
  ASSERT_EQ(status.ps_wait_size(), 1);
  EXPECT_EQ(status.ps_wait(0).ps(), "ps/4");
}

TEST(TaskReportsTest, LateWorkersAreNamedByTheirProcesses) {
  TaskReports reports;
  wire::HeartbeatRequest request;
  request.mutable_task()->set_role("ps");
  request.mutable_ps_load()->set_late_incarnation(9);
  request.mutable_ps_load()->set_late_worker("a name that a stranger gives");
  request.mutable_ps_load()->set_late_share(.5);
  reports.Keep(request);
  EXPECT_EQ(Described(reports, request.task()).ps_load().late_worker(),
            "worker/3");
  request.mutable_ps_load()->set_late_incarnation(8);
  reports.Keep(request);
  const wire::PsLoad load = Described(reports, request.task()).ps_load();
  EXPECT_EQ(load.late_worker(), "");
  EXPECT_EQ(load.late_share(), 0);
}

TEST(TaskReportsTest, NonsenseIsCutOrLeftOut) {
  TaskReports reports;
  wire::RegisterRequest arrival;
  *arrival.mutable_task() = Worker(1);
  arrival.set_version(std::string(10000, 'v'));
  arrival.set_process("\x1b[2Jhost\n");
  reports.Begin(arrival);
  wire::HeartbeatRequest request;
  *request.mutable_task() = Worker(1);
  for (int i = 0; i < 100; ++i) {
    wire::PsWait& wait = *request.add_ps_wait();
    wait.set_share(i == 0 ? std::numeric_limits<double>::quiet_NaN() : 1e300);
    wait.mutable_since()->set_seconds(i == 0 ? -5 : INT64_MAX);
    wait.set_trouble(std::string(10000, '\n'));
  }
  reports.Keep(request);
  const wire::TaskStatus status = Described(reports, Worker(1));
  EXPECT_LT(status.version().size(), 1000u);
  EXPECT_THAT(status.process(), Not(HasSubstr("\x1b")));
  ASSERT_LT(status.ps_wait_size(), 20);
  EXPECT_EQ(status.ps_wait(0).share(), 0);
  EXPECT_EQ(status.ps_wait(1).share(), 1);
  EXPECT_FALSE(status.ps_wait(0).has_since());
  EXPECT_FALSE(status.ps_wait(1).has_since());
  EXPECT_THAT(status.ps_wait(0).trouble(), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace parasol
