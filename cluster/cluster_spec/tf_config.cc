#include "cluster/cluster_spec/tf_config.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/tf_config_json.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

// {0, 1, 2, 5} as "0-2, 5".
std::string IndicesOf(const std::map<int, std::string>& tasks) {
  std::vector<std::string> ranges;
  for (auto it = tasks.begin(); it != tasks.end();) {
    const int first = it->first;
    int last = first;
    for (++it; it != tasks.end() && it->first == last + 1; ++it) ++last;
    ranges.push_back(first == last ? absl::StrCat(first)
                                   : absl::StrCat(first, "-", last));
  }
  return absl::StrJoin(ranges, ", ");
}

absl::Status CheckJobs(const ClusterSpec& cluster, StrategyKind strategy) {
  for (const Role role : {Role::kChief, Role::kEvaluator}) {
    if (cluster.num_tasks(role) > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          role == Role::kChief ? cluster.chief_key : "cluster.evaluator", ": ",
          cluster.num_tasks(role), " tasks, at most 1 allowed"));
    }
  }
  if (IsLocal(strategy)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster: there is one, but the ", StrategyName(strategy),
        " strategy trains in one process; leave TF_CONFIG and --cluster_spec "
        "out, or choose another --strategy"));
  }
  if (strategy == StrategyKind::kMultiWorkerMirrored) {
    if (cluster.num_tasks(Role::kPs) == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster.ps: ", cluster.num_tasks(Role::kPs),
        " tasks, but the multi_worker_mirrored strategy has no ps"));
  }
  for (const Role role : {Role::kPs, Role::kWorker}) {
    if (cluster.num_tasks(role) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("cluster.", RoleName(role), ": no task, but the ",
                       StrategyName(strategy), " strategy needs at least 1 ",
                       RoleName(role)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ChiefAddress(const ClusterSpec& cluster) {
  const auto& chiefs = cluster.tasks(Role::kChief);
  if (!chiefs.empty()) return chiefs.begin()->second;
  const auto& workers = cluster.tasks(Role::kWorker);
  if (const auto first = workers.find(0); first != workers.end()) {
    return first->second;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cluster: neither a chief nor a worker 0 that could do its duties",
      workers.empty() ? ""
                      : absl::StrCat(" (workers: ", IndicesOf(workers), ")")));
}

// Empty for an evaluator that the cluster does not list.
absl::StatusOr<std::string> OwnAddress(const ClusterSpec& cluster, Role role,
                                       int index) {
  const auto& tasks = cluster.tasks(role);
  if (const auto own = tasks.find(index); own != tasks.end()) {
    return own->second;
  }
  if (!tasks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task.index: ", index, " is not in job \"", RoleName(role),
                     "\", which has ", IndicesOf(tasks)));
  }
  if (role != Role::kEvaluator) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.type: the cluster has no job \"", RoleName(role), "\""));
  }
  if (index != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.index: ", index, ", but there is one evaluator at most: 0"));
  }
  return std::string();
}

absl::Status CheckRole(const TfConfigJson& config, Role binary) {
  if (config.type == binary) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("task.type: this is the \"", RoleName(binary),
                   "\" binary, but the task is a \"", config.type_name, "\""));
}

absl::StatusOr<TaskConfig> LoneTask(const TfConfigJson& config, Role binary) {
  if (config.type.has_value()) {
    RETURN_IF_ERROR(CheckRole(config, binary));
  }
  if (binary != Role::kWorker) {
    return absl::InvalidArgumentError(
        absl::StrCat("no cluster, but the role ", RoleName(binary),
                     " needs one: only a worker runs alone"));
  }
  if (config.index.value_or(0) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "task.index: ", *config.index, ", but without a cluster it is 0"));
  }
  TaskConfig task;
  task.is_chief = true;
  task.num_workers = 1;
  return task;
}

absl::StatusOr<TaskConfig> ClusterTask(const TfConfigJson& config, Role binary,
                                       std::optional<StrategyKind> given) {
  const ClusterSpec& cluster = *config.cluster;
  const StrategyKind strategy =
      given.value_or(StrategyOfCluster(cluster.num_tasks(Role::kPs)));
  if (!config.type.has_value()) {
    return absl::InvalidArgumentError(
        "task.type: missing, but there is a cluster");
  }
  if (!config.index.has_value()) {
    return absl::InvalidArgumentError(
        "task.index: missing, but there is a cluster");
  }
  RETURN_IF_ERROR(CheckRole(config, binary));
  RETURN_IF_ERROR(CheckJobs(cluster, strategy));

  TaskConfig task;
  task.role = *config.type;
  task.index = *config.index;
  ASSIGN_OR_RETURN(task.address, OwnAddress(cluster, task.role, task.index));
  ASSIGN_OR_RETURN(task.chief_address, ChiefAddress(cluster));
  task.is_chief = task.address == task.chief_address;
  task.num_workers = cluster.num_tasks(Role::kWorker);
  if (strategy == StrategyKind::kMultiWorkerMirrored) {
    task.num_workers += cluster.num_tasks(Role::kChief);
  }
  task.num_ps = cluster.num_tasks(Role::kPs);
  task.num_evaluators = cluster.num_tasks(Role::kEvaluator);
  task.cluster = cluster;
  return task;
}

absl::StatusOr<TaskConfig> TaskOf(absl::string_view text, Role binary,
                                  std::optional<StrategyKind> strategy) {
  if (text.empty()) return LoneTask(TfConfigJson(), binary);
  ASSIGN_OR_RETURN(const TfConfigJson config, ReadTfConfigJson(text));
  if (!config.cluster.has_value()) return LoneTask(config, binary);
  return ClusterTask(config, binary, strategy);
}

}  // namespace

absl::StatusOr<TaskConfig> ParseTfConfig(absl::string_view text, Role binary,
                                         std::optional<StrategyKind> strategy) {
  ASSIGN_OR_RETURN(TaskConfig task, TaskOf(text, binary, strategy),
                   _ << "TF_CONFIG");
  task.strategy = strategy;
  return task;
}

absl::StatusOr<TaskConfig> ParseClusterSpec(
    absl::string_view text, absl::string_view task, Role binary,
    std::optional<StrategyKind> strategy) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(task, absl::MaxSplits('/', 1));
  TfConfigJson config;
  config.type = RoleNamed(parts.first);
  config.type_name = std::string(parts.first);
  int index = -1;
  if (!config.type.has_value() || parts.second.empty() ||
      !std::all_of(parts.second.begin(), parts.second.end(),
                   absl::ascii_isdigit) ||
      !absl::SimpleAtoi(parts.second, &index)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--task=", absl::CHexEscape(task),
                     ": is not a role and an index, as in worker/1"));
  }
  config.index = index;
  ASSIGN_OR_RETURN(config.cluster, ReadClusterJson(text));
  ASSIGN_OR_RETURN(TaskConfig place, ClusterTask(config, binary, strategy));
  place.strategy = strategy;
  return place;
}

absl::Status CheckChiefHasPs(const TaskConfig& config) {
  if (!config.cluster.has_value() || config.num_ps > 0 ||
      config.cluster->num_tasks(Role::kChief) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      config.place_flags.empty() ? "TF_CONFIG" : config.place_flags.front(),
      ": ", config.cluster->chief_key, ": ", config.chief_address,
      ", but without ps, under multi_worker_mirrored, worker/0 does the "
      "chief's duties; make it a worker, leave it out, or add ps"));
}

std::string CheckConfigLine(const TaskConfig& config) {
  return nlohmann::ordered_json{
      {"task_type", RoleName(config.role)},
      {"task_index", config.index},
      {"is_chief", config.is_chief},
      {"address", config.address},
      {"chief_address", config.chief_address},
      {"num_workers", config.num_workers},
      {"num_ps", config.num_ps},
      {"num_evaluators", config.num_evaluators},
  }
      .dump();
}

}  // namespace parasol
