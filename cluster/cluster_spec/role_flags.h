#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_

#include <string>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

// The flags that the binary of every role has, and what they do with
// TF_CONFIG. For main() only: the one place that reads the environment.
ABSL_DECLARE_FLAG(bool, check_config);
ABSL_DECLARE_FLAG(parasol::StrategyKind, strategy);

namespace parasol {

// For the flag --strategy.
bool AbslParseFlag(absl::string_view text, StrategyKind* strategy,
                   std::string* error);
std::string AbslUnparseFlag(StrategyKind strategy);

// This process's task, from the environment's TF_CONFIG and --strategy.
//   InvalidArgument  as ParseTfConfig.
absl::StatusOr<TaskConfig> TaskConfigFromEnvironment(Role binary);

// The same for main(), right after ParseCommandLine and before any port is
// opened. Ends the process on an error (one line on stderr, exit 2) and under
// --check_config (one line on stdout, exit 0).
TaskConfig TaskConfigOrExit(Role binary);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_
