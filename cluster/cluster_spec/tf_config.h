#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// The task that `text`, the value of TF_CONFIG (empty when unset), gives to a
// binary of role `binary`: TensorFlow's own form, and those that Kubeflow's
// operator writes. Pure.
//   InvalidArgument  one line that names the key and the value at fault.
absl::StatusOr<TaskConfig> ParseTfConfig(absl::string_view text, Role binary,
                                         StrategyKind strategy);

// What --check_config prints: one JSON object, without the newline.
std::string CheckConfigLine(const TaskConfig& config);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
