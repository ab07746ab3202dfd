#include "deploy/resolver/resolved_task.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/tf_config.h"
#include "deploy/resolver/process_places.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

auto IsRefusedWith(const std::string& words) {
  return StatusIs(absl::StatusCode::kInvalidArgument,
                  AllOf(HasSubstr(words), Not(HasSubstr("\n"))));
}

ProcessPlaces SixProcesses(int rank = 0) {
  return {.hosts = {{"a", 2}, {"b", 3}, {"c", 1}},
          .rank = rank,
          .size_source = "SLURM_NTASKS"};
}

TEST(ResolvedTaskTest, RolesAreGivenOutInTheOrderOfTheirNames) {
  const ClusterWishes wishes = {.chief = true, .evaluator = true, .num_ps = 2};
  ASSERT_OK_AND_ASSIGN(const ResolvedTask task,
                       ResolveTask(SixProcesses(5), wishes));
  EXPECT_EQ(task.tf_config,
            R"({"cluster":{"chief":["a:8888"],"evaluator":["a:8889"],)"
            R"("ps":["b:8888","b:8889"],"worker":["b:8890","c:8888"]},)"
            R"("task":{"type":"worker","index":1}})");
  EXPECT_EQ(task.cluster,
            R"({"chief":["a:8888"],"evaluator":["a:8889"],)"
            R"("ps":["b:8888","b:8889"],"worker":["b:8890","c:8888"]})");
}

// Every process of every small cluster: its binary takes what it is given, and
// all agree on the cluster.
TEST(ResolvedTaskTest, EveryBinaryTakesItsTask) {
  for (int mask = 0; mask < 12; ++mask) {
    const ClusterWishes wishes = {.chief = mask % 2 == 1,
                                  .evaluator = mask / 2 % 2 == 1,
                                  .num_ps = mask / 4};
    const StrategyKind strategy = wishes.num_ps > 0
                                      ? StrategyKind::kParameterServer
                                      : StrategyKind::kMultiWorkerMirrored;
    ASSERT_OK_AND_ASSIGN(const ResolvedTask first,
                         ResolveTask(SixProcesses(0), wishes));
    for (int rank = 0; rank < 6; ++rank) {
      SCOPED_TRACE(absl::StrCat(mask, " ", rank));
      ASSERT_OK_AND_ASSIGN(const ResolvedTask task,
                           ResolveTask(SixProcesses(rank), wishes));
      EXPECT_EQ(task.cluster, first.cluster);
      ASSERT_OK_AND_ASSIGN(const TaskConfig config,
                           ParseTfConfig(task.tf_config, task.role, strategy));
      EXPECT_EQ(config.role, task.role);
      EXPECT_EQ(config.index, task.index);
      EXPECT_EQ(config.num_ps, wishes.num_ps);
      const std::string name =
          absl::StrCat(RoleName(task.role), "/", task.index);
      EXPECT_THAT(RankOfTask(name, SixProcesses(), wishes), IsOkAndHolds(rank));
      ASSERT_OK_AND_ASSIGN(
          const TaskConfig by_flag,
          ParseClusterSpec(task.cluster, name, task.role, strategy));
      EXPECT_EQ(by_flag.cluster, config.cluster);
    }
  }
}

TEST(ResolvedTaskTest, AsManyTasksAsProcesses) {
  ClusterWishes wishes = {.chief = true, .num_ps = 2, .num_workers = 4};
  EXPECT_THAT(ResolveTask(SixProcesses(), wishes),
              IsRefusedWith("--chief --ps=2 --workers=4: 7 tasks, but "
                            "SLURM_NTASKS gives 6 processes"));
  wishes.num_workers = 2;
  EXPECT_THAT(ResolveTask(SixProcesses(), wishes), IsRefusedWith("5 tasks"));
  wishes.num_workers = 3;
  EXPECT_OK(ResolveTask(SixProcesses(), wishes));
  wishes.num_workers = std::nullopt;
  wishes.num_ps = 2147483647;
  EXPECT_THAT(ResolveTask(SixProcesses(), wishes),
              IsRefusedWith("2147483648 tasks"));
}

TEST(ResolvedTaskTest, NumbersThatCannotBeAreNamed) {
  EXPECT_THAT(ResolveTask(SixProcesses(), {.num_ps = -1}),
              IsRefusedWith("--ps=-1"));
  EXPECT_THAT(ResolveTask(SixProcesses(), {.num_workers = -2}),
              IsRefusedWith("--workers=-2"));
  EXPECT_THAT(ResolveTask(SixProcesses(), {.base_port = 65536}),
              IsRefusedWith("--base_port=65536"));
}

TEST(ResolvedTaskTest, WhatTheParserRefusesIsRefusedInItsWords) {
  // The port of the second process on a host.
  EXPECT_THAT(ResolveTask(SixProcesses(), {.base_port = 65535}),
              IsRefusedWith("TF_CONFIG: cluster.worker[1]: \"a:65536\" is not "
                            "host:port: the port is not in 1-65535"));
  EXPECT_THAT(ResolveTask(SixProcesses(), {.num_ps = 6}),
              IsRefusedWith("cluster.worker: no task, but the parameter_server "
                            "strategy needs at least 1 worker"));
  EXPECT_THAT(
      ResolveTask(
          SixProcesses(),
          {.num_ps = 1, .strategy = StrategyKind::kMultiWorkerMirrored}),
      IsRefusedWith("cluster.ps: 1 tasks, but the multi_worker_mirrored"));
  EXPECT_THAT(
      ResolveTask(SixProcesses(), {.strategy = StrategyKind::kParameterServer}),
      IsRefusedWith("cluster.ps: no task"));
  // A list of Slurm may name a node twice, or something that is no node.
  EXPECT_THAT(
      ResolveTask({.hosts = {{"a", 1}, {"A", 1}}, .size_source = ""}, {}),
      IsRefusedWith("\"A:8888\" is the address of cluster.worker[0]"));
  EXPECT_THAT(
      ResolveTask({.hosts = {{"a\xff\n", 1}}, .size_source = ""}, {}),
      IsRefusedWith("the host is neither a DNS name nor an IP address"));
  EXPECT_THAT(ResolveTask({.hosts = {{std::string(200, 'a'), 1 << 16}},
                           .size_source = ""},
                          {.base_port = 1}),
              IsRefusedWith("are more than the limit of 1048576"));
}

TEST(ResolvedTaskTest, ATaskThatIsNotThereIsNamed) {
  for (const std::string task : {"worker/6", "worker/-1", "worker/01", "gpu/0",
                                 "worker", "ps/0", "\n"}) {
    EXPECT_THAT(RankOfTask(task, SixProcesses(), {}),
                IsRefusedWith("--task=\""));
  }
}

}  // namespace
}  // namespace parasol
