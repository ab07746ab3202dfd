#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// Returns the task that TF_CONFIG gives to a binary of role `binary`. `text` is
// the value of TF_CONFIG (empty if unset), in TensorFlow's own form or in a
// form that Kubeflow's operator writes. `strategy` is --strategy, if it was
// given: without it a cluster with ps is one of parameter servers, and one
// without ps is trained under multi_worker_mirrored. Reads nothing but its
// arguments.
//   InvalidArgument  one line that names the key and the value at fault.
absl::StatusOr<TaskConfig> ParseTfConfig(absl::string_view text, Role binary,
                                         std::optional<StrategyKind> strategy);

// Returns the task `task` ("worker/1") of the cluster that `text` lists, as
// ReadClusterJson() reads it, for a binary of role `binary`; the rest as above.
absl::StatusOr<TaskConfig> ParseClusterSpec(
    absl::string_view text, absl::string_view task, Role binary,
    std::optional<StrategyKind> strategy);

// Returns OK unless the cluster lists a chief, but no ps: workers alone train
// there, and worker 0 does the chief's duties.
//   InvalidArgument  one line that names the chief's key and what to do.
absl::Status CheckChiefHasPs(const TaskConfig& config);

// Returns the line that --check_config prints: one JSON object, without the
// newline.
std::string CheckConfigLine(const TaskConfig& config);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
