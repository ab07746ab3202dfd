#include "cluster/trust/trust_flags.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/flags/flag.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/address.h"
#include "cluster/trust/token_store.h"

ABSL_FLAG(std::string, tls_certificate, "",
          "PEM file with this process's certificate, which says its job, role "
          "and index (docs/security.md), and those that lead to an authority. "
          "Read again while running. With --tls_key and --tls_ca.");
ABSL_FLAG(std::string, tls_key, "",
          "PEM file with the private key of --tls_certificate.");
ABSL_FLAG(std::string, tls_ca, "",
          "PEM file with the authorities whose certificates this process "
          "accepts.");
ABSL_FLAG(std::string, token_file, "",
          "File with a secret of 16 bytes or more that the tasks of one job "
          "share; in place of certificates.");
ABSL_FLAG(bool, insecure, false,
          "Run without keys where others can reach this task: everybody who "
          "does may end the job, change it and read the model.");

namespace parasol {

TrustSettings TrustSettingsOfFlags() {
  return {.files = {.certificate = absl::GetFlag(FLAGS_tls_certificate),
                    .key = absl::GetFlag(FLAGS_tls_key),
                    .authorities = absl::GetFlag(FLAGS_tls_ca)},
          .token_file = absl::GetFlag(FLAGS_token_file),
          .insecure = absl::GetFlag(FLAGS_insecure)};
}

absl::StatusOr<std::shared_ptr<const Trust>> TrustOfTask(
    const TaskConfig& config, PeerRole role) {
  const TrustSettings settings = TrustSettingsOfFlags();
  ASSIGN_OR_RETURN(
      std::shared_ptr<const Trust> trust,
      settings.Open(role, role == PeerRole::kChief ? 0 : config.index,
                    Clock::Real()));
  RETURN_IF_ERROR(CheckMayBeReached(settings, config));
  if (settings.insecure) {
    LOG(WARNING) << "--insecure: everybody who reaches this task's ports may "
                    "end the job, change it and read the model";
  }
  return trust;
}

std::vector<std::string> TokenFoldersOfUser() {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  return TokenFolders(variable("XDG_DATA_HOME"), variable("HOME"), geteuid());
}

std::string MetricsListenAddress(const std::string& flag,
                                 const TaskConfig& config) {
  if (!flag.empty()) return flag;
  const std::string& address =
      config.address.empty() ? config.chief_address : config.address;
  return address.empty() || IsLoopback(address) ? "127.0.0.1:0" : "0.0.0.0:0";
}

}  // namespace parasol
