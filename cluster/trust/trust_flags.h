#ifndef PARASOL_CLUSTER_TRUST_TRUST_FLAGS_H_
#define PARASOL_CLUSTER_TRUST_TRUST_FLAGS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/trust.h"
#include "cluster/trust/trust_settings.h"

// Flags of every process that takes part in a job or asks for one, by which it
// has keys. Only main() and commands of the tool may read them.
ABSL_DECLARE_FLAG(std::string, tls_certificate);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_ca);
ABSL_DECLARE_FLAG(std::string, token_file);
ABSL_DECLARE_FLAG(bool, insecure);

namespace parasol {

TrustSettings TrustSettingsOfFlags();

// Returns the keys of a role's process; null if it needs none. `role` is the
// part that it has: a chief beside worker 0 has that worker's configuration.
// Says once in the log what --insecure means. Fails as
// TrustSettings::Open() and CheckMayBeReached() do.
absl::StatusOr<std::shared_ptr<const Trust>> TrustOfTask(
    const TaskConfig& config, PeerRole role);

// Returns TokenFolders() of this process's user and environment.
std::vector<std::string> TokenFoldersOfUser();

// Returns where a task's /metrics listens: at `flag` or, if that is empty, at a
// free port, of loopback if the task has its address there or has none.
std::string MetricsListenAddress(const std::string& flag,
                                 const TaskConfig& config);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TRUST_FLAGS_H_
