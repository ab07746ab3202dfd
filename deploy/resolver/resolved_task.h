#ifndef PARASOL_DEPLOY_RESOLVER_RESOLVED_TASK_H_
#define PARASOL_DEPLOY_RESOLVER_RESOLVED_TASK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "deploy/resolver/process_places.h"

namespace parasol {

// The user's wishes for the cluster that some processes become.
//
// Roles are given out in the order of their names, as TensorFlow's
// SlurmClusterResolver does: process 0 is the chief if there is one, then come
// the evaluator, the ps and the workers.
struct ClusterWishes {
  bool chief = false;
  bool evaluator = false;
  int num_ps = 0;
  // nullopt: all processes that have no other role.
  std::optional<int> num_workers = std::nullopt;
  // Port of each host's first process; the next ones follow.
  int base_port = 8888;
  // nullopt: parameter_server if there are ps, else multi_worker_mirrored.
  std::optional<StrategyKind> strategy = std::nullopt;
};

struct ResolvedTask {
  Role role = Role::kWorker;
  int index = 0;
  // The cluster as --cluster_spec reads it, and as TF_CONFIG with this task in
  // it: one line of JSON each.
  std::string cluster = {};
  std::string tf_config = {};
};

// Returns the task that the process `places.rank` is.
//   InvalidArgument  the processes are not as many as the wishes say, or the
//                    task's binary would refuse the TF_CONFIG: then the message
//                    has ParseTfConfig()'s words.
absl::StatusOr<ResolvedTask> ResolveTask(const ProcessPlaces& places,
                                         const ClusterWishes& wishes);

// Returns the rank of the task `task`, "worker/1", among the processes of
// `places`, whose own rank is not looked at.
//   InvalidArgument  as above, or there is no such task.
absl::StatusOr<int> RankOfTask(absl::string_view task,
                               const ProcessPlaces& places,
                               const ClusterWishes& wishes);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_RESOLVER_RESOLVED_TASK_H_
