#include "deploy/local/task_plan.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

bool IsMirrored(const LocalJob& job) {
  return job.num_ps == 0 && !job.is_alone;
}

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

std::string CacheFlag(const LocalJob& job) {
  return absl::StrCat("--data_cache_dir=", job.data_cache_dir);
}

std::vector<std::string> DataFlags(const LocalJob& job) {
  std::vector<std::string> flags = {absl::StrCat("--data_dir=", job.data_dir)};
  if (!job.data_cache_dir.empty()) flags.push_back(CacheFlag(job));
  return flags;
}

// The flags of one role beside --metrics_address and ChiefFlags().
std::vector<std::string> RoleFlags(const LocalJob& job,
                                   const std::string& role) {
  if (role == "chief") return DataFlags(job);
  if (role == "worker" || role == "evaluator") {
    std::vector<std::string> flags = DataFlags(job);
    flags.push_back(absl::StrCat("--device=", job.device));
    flags.push_back(absl::StrCat("--threads=", job.threads));
    if (role == "worker" && job.is_hybrid) flags.push_back("--strategy=hybrid");
    return flags;
  }
  std::vector<std::string> flags;
  if (role != "ps") return flags;
  if (job.applies_non_finite) flags.push_back("--nonfinite_gradients=apply");
  if (!job.data_cache_dir.empty()) flags.push_back(CacheFlag(job));
  return flags;
}

std::string BinaryOf(const LocalJob& job, const std::string& role) {
  if (role == "worker" && !job.worker_binary.empty()) return job.worker_binary;
  if (role == "evaluator" && !job.evaluator_binary.empty()) {
    return job.evaluator_binary;
  }
  if (role == "ps" && !job.ps_binary.empty()) return job.ps_binary;
  return absl::StrCat(job.bin_dir, "/", role, "/", role);
}

// The address that a task binds for its metrics: on other hosts all interfaces,
// as a host's name is none.
std::string MetricsInterface(const LocalJob& job, const std::string& address) {
  if (job.hosts.empty()) return address;
  const std::string port = address.substr(address.rfind(':'));
  return absl::StrCat(address[0] == '[' ? "[::]" : "0.0.0.0", port);
}

// Plans the only task of a job without a cluster.
TaskPlan PlanLoneWorker(const LocalJob& job, const std::string& status_address,
                        const std::string& metrics_address) {
  TaskPlan task;
  task.role = "worker";
  task.leads_job = true;
  task.name = "worker/0";
  task.metrics_address = metrics_address;
  task.log_file = absl::StrCat(job.log_dir, "/worker-0.log");
  task.argv = {BinaryOf(job, task.role),
               absl::StrCat("--metrics_address=", metrics_address),
               absl::StrCat("--status_address=", status_address)};
  for (std::string& flag : RoleFlags(job, task.role)) {
    task.argv.push_back(std::move(flag));
  }
  for (std::string& flag : ChiefFlags(job)) {
    task.argv.push_back(std::move(flag));
  }
  return task;
}

TaskPlan PlanTask(const LocalJob& job, const nlohmann::ordered_json& cluster,
                  const std::string& role, int index,
                  const std::string& metrics_address) {
  TaskPlan task;
  task.role = role;
  task.name = absl::StrCat(role, "/", index);
  task.metrics_address = metrics_address;
  task.log_file = absl::StrCat(job.log_dir, "/", role, "-", index, ".log");
  task.argv = {BinaryOf(job, role),
               absl::StrCat("--metrics_address=",
                            MetricsInterface(job, metrics_address))};
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

std::vector<std::string> TaskRoles(const LocalJob& job) {
  if (job.is_alone) return {"worker"};
  std::vector<std::string> roles;
  if (!IsMirrored(job)) roles.push_back("chief");
  roles.insert(roles.end(), job.num_ps, "ps");
  roles.insert(roles.end(), job.num_workers, "worker");
  if (job.has_evaluator) roles.push_back("evaluator");
  return roles;
}

int NumAddresses(const LocalJob& job) {
  const int num_tasks = static_cast<int>(TaskRoles(job).size());
  const bool has_evaluator = job.has_evaluator && !job.is_alone;
  return 2 * num_tasks - (has_evaluator ? 1 : 0);
}

LocalPlan PlanTasks(const LocalJob& job,
                    const std::vector<std::string>& addresses) {
  CHECK_EQ(static_cast<int>(addresses.size()), NumAddresses(job));
  if (job.is_alone) {
    return {.chief_address = addresses[0],
            .tasks = {PlanLoneWorker(job, addresses[0], addresses[1])}};
  }
  const std::vector<std::string> roles = TaskRoles(job);
  auto address = addresses.begin();
  nlohmann::ordered_json cluster;
  for (const std::string& role : roles) {
    if (role != "evaluator") cluster[role].push_back(*address++);
  }
  LocalPlan plan;
  plan.chief_address = addresses[0];
  std::map<std::string, int> next_index;
  for (const std::string& role : roles) {
    plan.tasks.push_back(
        PlanTask(job, cluster, role, next_index[role]++, *address++));
  }
  return plan;
}

}  // namespace parasol
