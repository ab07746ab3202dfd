#ifndef PARASOL_CLUSTER_TRUST_TRUST_SETTINGS_H_
#define PARASOL_CLUSTER_TRUST_TRUST_SETTINGS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/trust.h"

namespace parasol {

// The sources of a process's keys: its flags.
struct TrustSettings {
  CertificateFiles files = {};
  std::string token_file = {};
  // Allows a task without keys on a network.
  bool insecure = false;

  bool has_keys() const;

  // Returns the flags that give another process of this task the same keys.
  std::vector<std::string> ToFlags() const;

  // Returns the keys of a process that is `role`, `index` to the job; null
  // without any. `role` is what a token's certificate says. Where the files
  // say another identity than that and worker/0's, which a chief beside that
  // worker has, they are somebody else's.
  //   InvalidArgument  the flags exclude each other, one is missing, or their
  //                    files are of no use; the message names the flag.
  absl::StatusOr<std::shared_ptr<const Trust>> Open(PeerRole role, int index,
                                                    Clock& clock) const;
};

// Returns OK if a task of this cluster may run with the settings: it has keys,
// or all tasks are on this machine's loopback, or `insecure` is set.
//   InvalidArgument  names an address on a network, and the flags.
absl::Status CheckMayBeReached(const TrustSettings& settings,
                               const TaskConfig& config);

// Does the same for a server at an address that a flag names
// ("status_address"); empty: there is none.
absl::Status CheckMayListen(const TrustSettings& settings,
                            absl::string_view flag, const std::string& address);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_TRUST_TRUST_SETTINGS_H_
