#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

namespace parasol {

// Returns the task that TF_CONFIG gives to a binary of role `binary`. `text` is
// the value of TF_CONFIG (empty if unset), in TensorFlow's own form or in a
// form that Kubeflow's operator writes. Reads nothing but its arguments.
//   InvalidArgument  one line that names the key and the value at fault.
absl::StatusOr<TaskConfig> ParseTfConfig(absl::string_view text, Role binary,
                                         StrategyKind strategy);

// Returns the line that --check_config prints: one JSON object, without the
// newline.
std::string CheckConfigLine(const TaskConfig& config);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_TF_CONFIG_H_
