#include "deploy/local/host_tasks.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/cluster_spec/tf_config.h"
#include "deploy/local/task_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LocalJob JobOn(std::vector<Host> hosts) {
  LocalJob job;
  job.bin_dir = "/opt/parasol";
  job.num_ps = 2;
  job.num_workers = 4;
  job.hosts = std::move(hosts);
  job.ssh = "ssh";
  job.base_port = 7000;
  return job;
}

TEST(HostTasksTest, PsAndWorkersAreDealtInTurnAndPortsCountedOnEachHost) {
  EXPECT_THAT(
      AddressesOnHosts(JobOn({{"a", 1}, {"b", 2}})),
      IsOkAndHolds(ElementsAre(
          // chief, ps, workers
          "a:7000", "a:7002", "b:7000", "a:7004", "b:7002", "b:7004", "a:7006",
          // metrics, the evaluator's last
          "a:7001", "a:7003", "b:7001", "a:7005", "b:7003", "b:7005", "a:7007",
          "a:7009")));
}

TEST(HostTasksTest, TheTasksBinariesTakeTheirPlaces) {
  const LocalJob job = JobOn({{"a", 1}, {"[fe80::1]", 1}, {"10.0.0.3", 1}});
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> addresses,
                       AddressesOnHosts(job));
  for (const TaskPlan& task : PlanTasks(job, addresses).tasks) {
    ASSERT_OK_AND_ASSIGN(const TaskConfig config,
                         ParseTfConfig(task.tf_config, *RoleNamed(task.role),
                                       StrategyKind::kParameterServer));
    EXPECT_EQ(absl::StrCat(RoleName(config.role), "/", config.index),
              task.name);
    EXPECT_EQ(config.num_workers, 4);
  }
}

TEST(HostTasksTest, MetricsAreOnAllInterfacesOfTheHost) {
  const LocalJob job = JobOn({{"a", 1}, {"[::1]", 1}});
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> addresses,
                       AddressesOnHosts(job));
  const LocalPlan plan = PlanTasks(job, addresses);
  EXPECT_EQ(plan.tasks[0].metrics_address, "a:7001");
  EXPECT_THAT(plan.tasks[0].argv, Contains("--metrics_address=0.0.0.0:7001"));
  EXPECT_THAT(plan.tasks[2].argv, Contains("--metrics_address=[::]:7001"));
}

TEST(HostTasksTest, AHostWithoutEnoughPortsIsNamed) {
  LocalJob job = JobOn({{"a", 1}, {"b", 1}});
  job.base_port = 65530;
  EXPECT_THAT(AddressesOnHosts(job),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--base_port=65530: a has more tasks")));
}

TEST(HostTasksTest, ATaskIsStartedOnItsHostWithItsPlaceAndItsCommand) {
  const LocalJob job = JobOn({{"a", 1}, {"b", 1}});
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> addresses,
                       AddressesOnHosts(job));
  LocalPlan plan = PlanTasks(job, addresses);
  StartOnHosts(job, "a token", plan.tasks);
  const TaskPlan& ps = plan.tasks[2];
  EXPECT_TRUE(ps.is_remote);
  EXPECT_EQ(ps.argv[ps.argv.size() - 2], "b");
  EXPECT_THAT(ps.argv.back(),
              AllOf(HasSubstr("exec /opt/parasol/deploy/remote/remote_task "
                              "--takes_token --tf_config='{\"cluster\":"),
                    HasSubstr(" -- /opt/parasol/ps/ps --metrics_address="),
                    Not(HasSubstr("a token"))));
  EXPECT_EQ(ps.first_input, "a token\n");
}

}  // namespace
}  // namespace parasol
