#include "deploy/local/task_plan.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

std::string Loopback(int port) { return absl::StrCat("127.0.0.1:", port); }

bool IsMirrored(const LocalJob& job) { return job.num_ps == 0; }

// The flags of the task that has the job.
std::vector<std::string> ChiefFlags(const LocalJob& job) {
  std::vector<std::string> flags = {
      absl::StrCat("--job=", job.job_file),
      absl::StrCat("--checkpoint_dir=", job.checkpoint_dir)};
  if (!job.checkpoint_timeout.empty()) {
    flags.push_back(
        absl::StrCat("--checkpoint_timeout=", job.checkpoint_timeout));
  }
  if (!job.strategy.empty()) {
    flags.push_back(absl::StrCat("--strategy=", job.strategy));
  }
  for (const std::string& assignment : job.overrides) {
    flags.push_back(absl::StrCat("--set=", assignment));
  }
  return flags;
}

// The flags of one role beside --metrics_address and ChiefFlags().
std::vector<std::string> RoleFlags(const LocalJob& job,
                                   const std::string& role) {
  if (role == "worker" || role == "evaluator") {
    return {absl::StrCat("--data_dir=", job.data_dir),
            absl::StrCat("--device=", job.device),
            absl::StrCat("--threads=", job.threads)};
  }
  if (role == "ps" && job.applies_non_finite) {
    return {"--nonfinite_gradients=apply"};
  }
  return {};
}

std::string BinaryOf(const LocalJob& job, const std::string& role) {
  if (role == "worker" && !job.worker_binary.empty()) return job.worker_binary;
  if (role == "evaluator" && !job.evaluator_binary.empty()) {
    return job.evaluator_binary;
  }
  return absl::StrCat(job.bin_dir, "/", role, "/", role);
}

TaskPlan PlanTask(const LocalJob& job, const nlohmann::ordered_json& cluster,
                  const std::string& role, int index, int metrics_port) {
  TaskPlan task;
  task.role = role;
  task.name = absl::StrCat(role, "/", index);
  task.metrics_address = Loopback(metrics_port);
  task.log_file = absl::StrCat(job.log_dir, "/", role, "-", index, ".log");
  task.argv = {BinaryOf(job, role),
               absl::StrCat("--metrics_address=", task.metrics_address)};
  for (std::string& flag : RoleFlags(job, role)) {
    task.argv.push_back(std::move(flag));
  }
  task.leads_job = IsMirrored(job) ? task.name == "worker/0" : role == "chief";
  if (task.leads_job) {
    for (std::string& flag : ChiefFlags(job)) {
      task.argv.push_back(std::move(flag));
    }
  }
  if (task.leads_job && role == "worker") {
    task.argv.push_back(
        absl::StrCat("--chief_binary=", BinaryOf(job, "chief")));
  }
  const nlohmann::ordered_json tf_config = {
      {"cluster", cluster}, {"task", {{"type", role}, {"index", index}}}};
  task.tf_config = tf_config.dump();
  return task;
}

}  // namespace

int NumPorts(const LocalJob& job) {
  const int num_chiefs = IsMirrored(job) ? 0 : 1;
  const int num_addresses = num_chiefs + job.num_ps + job.num_workers;
  const int num_metrics = num_addresses + (job.has_evaluator ? 1 : 0);
  return num_addresses + num_metrics;
}

LocalPlan PlanTasks(const LocalJob& job, const std::vector<int>& ports) {
  CHECK_EQ(static_cast<int>(ports.size()), NumPorts(job));
  auto port = ports.begin();
  nlohmann::ordered_json cluster;
  const auto add_role = [&](const std::string& role, int count) {
    for (int i = 0; i < count; ++i) cluster[role].push_back(Loopback(*port++));
  };
  add_role("chief", IsMirrored(job) ? 0 : 1);
  add_role("ps", job.num_ps);
  add_role("worker", job.num_workers);

  LocalPlan plan;
  plan.chief_address = cluster[IsMirrored(job) ? "worker" : "chief"][0];
  for (const auto& [role, addresses] : cluster.items()) {
    for (size_t i = 0; i < addresses.size(); ++i) {
      plan.tasks.push_back(PlanTask(job, cluster, role, i, *port++));
    }
  }
  if (job.has_evaluator) {
    plan.tasks.push_back(PlanTask(job, cluster, "evaluator", 0, *port++));
  }
  return plan;
}

}  // namespace parasol
