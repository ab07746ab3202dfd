#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

// Who is in the cluster, and which of them this process is.
namespace parasol {

enum class Role { kPs, kWorker, kChief, kEvaluator };

// "ps", "worker", "chief", "evaluator": the name of the role's binary and of
// its job in TF_CONFIG.
absl::string_view RoleName(Role role);
std::optional<Role> RoleNamed(absl::string_view name);

enum class StrategyKind { kParameterServer, kMultiWorkerMirrored };

// "parameter_server", "multi_worker_mirrored".
absl::string_view StrategyName(StrategyKind strategy);
std::optional<StrategyKind> StrategyNamed(absl::string_view name);

// The tasks of a cluster.
//
// Invariant: at most one chief and one evaluator; every address is host:port
// and no two are the same.
struct ClusterSpec {
  // Index to address. A role without a task has no entry. Indices may have
  // gaps: a worker of a dynamic Kubeflow job is told of no other worker.
  std::map<Role, std::map<int, std::string>> jobs;

  // Empty for a role without a task.
  const std::map<int, std::string>& tasks(Role role) const;
  int num_tasks(Role role) const;
};

// What one task knows of its place in the cluster when it starts.
struct TaskConfig {
  Role role = Role::kWorker;
  int index = 0;
  // This task does the chief's duties: it is the chief or, in a cluster that
  // has none, worker 0.
  bool is_chief = false;
  // Its own; empty without a cluster, and for an evaluator that the cluster
  // does not list.
  std::string address;
  // Of the task whose is_chief is true; empty without a cluster.
  std::string chief_address;
  // Tasks that compute gradients: under multi-worker mirrored the chief too.
  int num_workers = 0;
  int num_ps = 0;
  int num_evaluators = 0;
  // Absent: a lone worker, which trains locally.
  std::optional<ClusterSpec> cluster;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_
