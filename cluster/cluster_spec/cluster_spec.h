#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// The tasks of a cluster, and the task that this process is.
namespace parasol {

enum class Role { kPs, kWorker, kChief, kEvaluator };

// Returns "ps", "worker", "chief" or "evaluator": the name of the role's binary
// and of its job in TF_CONFIG.
absl::string_view RoleName(Role role);
std::optional<Role> RoleNamed(absl::string_view name);

// The strategies of tf.distribute. The last four train in one process;
// hybrid is none of TensorFlow's.
enum class StrategyKind {
  kParameterServer,
  kMultiWorkerMirrored,
  kHybrid,
  kDefault,
  kOneDevice,
  kMirrored,
  kCentralStorage,
};

// Returns the strategy's name in jobs and flags: "parameter_server".
absl::string_view StrategyName(StrategyKind strategy);
std::optional<StrategyKind> StrategyNamed(absl::string_view name);
// Returns all names for messages: "parameter_server, … or central_storage".
std::string StrategyNames();
// Returns true if the strategy trains in one process, without TF_CONFIG.
bool IsLocal(StrategyKind strategy);
// Returns the strategy of a cluster with `num_ps` ps for which neither
// --strategy nor the job names one.
StrategyKind StrategyOfCluster(int num_ps);

// The tasks of a cluster.
//
// Invariant: at most one chief and one evaluator; every address is host:port
// and no two are the same.
struct ClusterSpec {
  // Addresses by role and index. A role without a task has no entry. Indices
  // may have gaps: a worker of a dynamic Kubeflow job is told of no other
  // worker.
  std::map<Role, std::map<int, std::string>> jobs;
  // Key of the chief's job as it was read, for errors: "cluster.master".
  std::string chief_key = "cluster.chief";

  // Returns the addresses of a role's tasks by index; empty for a role without
  // a task.
  const std::map<int, std::string>& tasks(Role role) const;
  int num_tasks(Role role) const;

  // Returns true if the tasks are the same, whatever the chief is called.
  friend bool operator==(const ClusterSpec& a, const ClusterSpec& b) {
    return a.jobs == b.jobs;
  }
};

// Returns the index of the ps that worker 0 is to the chief where workers have
// variables: the first one after the cluster's own, `ps`.
int StatePlace(const std::map<int, std::string>& ps);

// A task's place in the cluster, as the task knows it when it starts.
struct TaskConfig {
  Role role = Role::kWorker;
  int index = 0;
  // True if this task does the chief's duties: it is the chief or, in a cluster
  // without a chief, worker 0.
  bool is_chief = false;
  // The task's own address. Empty without a cluster, and for an evaluator that
  // the cluster does not list.
  std::string address;
  // Address of the task whose is_chief is true; empty without a cluster.
  std::string chief_address;
  // Number of tasks that compute gradients, including the chief under
  // multi-worker mirrored.
  int num_workers = 0;
  int num_ps = 0;
  int num_evaluators = 0;
  // The strategy that --strategy names; nullopt if it was not given.
  std::optional<StrategyKind> strategy;
  // Flags that give another process of this task the same place; empty if it is
  // in TF_CONFIG, which child processes inherit.
  std::vector<std::string> place_flags;
  // The cluster; nullopt for a lone worker, which trains locally.
  std::optional<ClusterSpec> cluster;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_CLUSTER_SPEC_H_
