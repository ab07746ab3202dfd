#ifndef PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_
#define PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_

#include <optional>
#include <string>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"

// Flags that the binary of every role has, and functions that read them and
// TF_CONFIG. Only main() may call these functions: no other code reads the
// environment.
ABSL_DECLARE_FLAG(bool, check_config);
ABSL_DECLARE_FLAG(std::string, cluster_spec);
ABSL_DECLARE_FLAG(std::string, task);
ABSL_DECLARE_FLAG(std::optional<parasol::StrategyKind>, strategy);

namespace parasol {

// Conversions for the flag --strategy.
bool AbslParseFlag(absl::string_view text, StrategyKind* strategy,
                   std::string* error);
std::string AbslUnparseFlag(StrategyKind strategy);

// Returns this process's task, from --cluster_spec and --task or from the
// environment's TF_CONFIG, and from --strategy.
//   InvalidArgument  as for ParseTfConfig() and ParseClusterSpec(); or one of
//   the
//                    two flags is missing, the file can't be read, or TF_CONFIG
//                    says something else.
absl::StatusOr<TaskConfig> TaskConfigFromEnvironment(Role binary);

// Does the same for main(), which calls it right after ParseCommandLine() and
// before it opens any port. Ends the process on an error (one line on stderr,
// exit 2), with CheckChiefHasPs()'s too, and under --check_config (one line on
// stdout, exit 0).
TaskConfig TaskConfigOrExit(Role binary);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLUSTER_SPEC_ROLE_FLAGS_H_
