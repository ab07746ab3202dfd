// Whole clusters of real processes that are told to stop, all at once or one
// after the other, in several orders: one checkpoint, and nothing is lost.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/subprocess.h"
#include "cluster/checkpoint/final_checkpoint.h"
#include "cluster/client/chief_client.h"
#include "deploy/local/loopback_ports.h"
#include "deploy/local/task_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/checkpoint_store.h"
#include "tests/cluster/ratings.h"
#include "tests/end_to_end/launched_cluster.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kLimit = absl::Minutes(2);

// The tasks of a cluster without a launcher: nobody starts one again.
class BareCluster {
 public:
  // Starts two ps, unless the strategy has none, two workers, a chief and an
  // evaluator. `mode` is a strategy, or an override of the job.
  static absl::StatusOr<std::unique_ptr<BareCluster>> Start(
      const std::string& name, const std::string& mode) {
    auto cluster = std::make_unique<BareCluster>();
    const fs::path root = fs::path(getenv("TEST_TMPDIR")) / name;
    fs::create_directories(root / "logs");
    const bool is_hybrid = mode == kHybrid;
    std::ofstream(root / "job.textproto")
        << (is_hybrid ? RatingsJob(1000000).DebugString() : DigitsJob());
    LocalJob job;
    job.job_file = root / "job.textproto";
    job.data_dir = is_hybrid ? RatingsDirectory() : DigitsDirectory();
    job.checkpoint_dir = cluster->checkpoint_dir_ = root / "ckpt";
    job.log_dir = root / "logs";
    job.bin_dir = BinaryPath(".");
    job.device = "cpu";
    const bool is_mirrored = mode == kMirrored;
    job.num_ps = is_mirrored ? 0 : 2;
    job.num_workers = 2;
    job.is_hybrid = is_hybrid;
    job.overrides = {"end.steps=1000000", "checkpoint.every_steps=1000000"};
    if (is_mirrored || is_hybrid) {
      job.strategy = mode;
    } else {
      job.overrides.push_back(mode);
    }
    ASSIGN_OR_RETURN(const std::vector<int> ports,
                     FreeLoopbackPorts(NumAddresses(job)));
    std::vector<std::string> addresses;
    for (const int port : ports) {
      addresses.push_back(absl::StrCat("127.0.0.1:", port));
    }
    const LocalPlan plan = PlanTasks(job, addresses);
    cluster->chief_ = ChiefClient::Create(plan.chief_address, absl::Seconds(4));
    for (const TaskPlan& task : plan.tasks) {
      cluster->logs_[task.name] = task.log_file;
      ASSIGN_OR_RETURN(
          cluster->tasks_[task.name],
          Subprocess::Start({.argv = task.argv,
                             .environment = {{"TF_CONFIG", task.tf_config}},
                             .standard_error = OutputTo::File(task.log_file)}));
    }
    return cluster;
  }

  absl::Status AwaitStep(int64_t step) {
    return WaitUntil("training", [&] {
      const auto status = chief_->GetStatus();
      return status.ok() && status->global_step() >= step;
    });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, task] : tasks_) names.push_back(name);
    return names;
  }
  void Terminate(const std::string& name) { tasks_.at(name)->Terminate(); }
  // Returns the exit code, once it has ended.
  absl::StatusOr<int> EndOf(const std::string& name) {
    ASSIGN_OR_RETURN(const ProcessEnd end, tasks_.at(name)->Wait(kLimit));
    return end.code();
  }
  std::string LogOf(const std::string& name) const {
    std::ifstream in(logs_.at(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string& checkpoint_dir() const { return checkpoint_dir_; }

  static constexpr char kMirrored[] = "multi_worker_mirrored";
  static constexpr char kHybrid[] = "hybrid";

 private:
  std::string checkpoint_dir_;
  std::unique_ptr<ChiefClient> chief_;
  std::map<std::string, std::string> logs_;
  std::map<std::string, std::unique_ptr<Subprocess>> tasks_;
};

struct Stop {
  std::string name;
  std::string mode;
  // Roles in the order in which they are told; the next one when all of the one
  // before have ended. Empty: all at once.
  std::vector<std::string> roles;

  friend std::ostream& operator<<(std::ostream& out, const Stop& stop) {
    return out << stop.name;
  }
};

class StopTest : public testing::TestWithParam<Stop> {};

std::vector<Stop> Stops() {
  const std::pair<std::string, std::string> modes[] = {
      {"asynchronous", "seed=7"},
      {"bounded", "parameter_server.bounded_staleness.bound=2"},
      {"synchronous", "parameter_server.synchronous.lost_worker=REASSIGN"},
      {"mirrored", BareCluster::kMirrored},
      {"hybrid", BareCluster::kHybrid}};
  const std::pair<std::string, std::vector<std::string>> orders[] = {
      {"at_once", {}},
      {"chief_first", {"chief", "ps", "worker", "evaluator"}},
      {"ps_first", {"ps", "worker", "chief", "evaluator"}},
      {"workers_first", {"evaluator", "worker", "ps", "chief"}}};
  std::vector<Stop> stops;
  for (const auto& [name, mode] : modes) {
    for (const auto& [order, roles] : orders) {
      stops.push_back({absl::StrCat(name, "_", order), mode, roles});
    }
  }
  return stops;
}

INSTANTIATE_TEST_SUITE_P(Orders, StopTest, testing::ValuesIn(Stops()),
                         [](const auto& info) { return info.param.name; });

TEST_P(StopTest, OneCheckpointHasEverything) {
  ASSERT_OK_AND_ASSIGN(const auto cluster,
                       BareCluster::Start(GetParam().name, GetParam().mode));
  ASSERT_OK(cluster->AwaitStep(50));
  for (const std::string& role : GetParam().roles) {
    for (const std::string& name : cluster->names()) {
      if (name.substr(0, name.find('/')) != role) continue;
      cluster->Terminate(name);
      EXPECT_THAT(cluster->EndOf(name), IsOkAndHolds(143)) << name;
    }
  }
  if (GetParam().roles.empty()) {
    for (const std::string& name : cluster->names()) cluster->Terminate(name);
  }
  for (const std::string& name : cluster->names()) {
    EXPECT_THAT(cluster->EndOf(name), IsOkAndHolds(143)) << name;
    EXPECT_THAT(cluster->LogOf(name), Not(HasSubstr("are lost")));
  }
  const auto newest = NewestManifest(cluster->checkpoint_dir());
  ASSERT_TRUE(newest.has_value());
  EXPECT_GE(newest->global_step(), 50);
  ASSERT_OK_AND_ASSIGN(const auto steps,
                       CheckpointStore(cluster->checkpoint_dir()).ListSteps());
  EXPECT_EQ(steps.size(), 2) << "that of step 0, and one";
}

}  // namespace
}  // namespace parasol
