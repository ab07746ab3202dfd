#include "cluster/trust/trust_settings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "cluster/cluster_spec/address.h"
#include "cluster/trust/job_token.h"

namespace parasol {
namespace {

constexpr absl::string_view kWaysToHaveKeys =
    "give all tasks --token_file, or --tls_certificate, --tls_key and --tls_ca";

std::vector<std::pair<absl::string_view, std::string>> FlagsOf(
    const TrustSettings& settings) {
  return {{"tls_certificate", settings.files.certificate},
          {"tls_key", settings.files.key},
          {"tls_ca", settings.files.authorities},
          {"token_file", settings.token_file}};
}

absl::Status CheckFlagsAgree(const TrustSettings& settings) {
  const auto flags = FlagsOf(settings);
  absl::string_view given;
  absl::string_view missing;
  for (const auto& [name, value] : flags) {
    if (name == "token_file") continue;
    (value.empty() ? missing : given) = name;
  }
  if (!given.empty() && !missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", missing, ": missing; --", given,
        " needs all of --tls_certificate, --tls_key and --tls_ca"));
  }
  if (!given.empty() && !settings.token_file.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--token_file=", settings.token_file, " and --", given,
                     ": two kinds of keys; leave one out"));
  }
  if (settings.has_keys() && settings.insecure) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--insecure: this task has keys (--",
        given.empty() ? "token_file" : given, "); leave one of the two out"));
  }
  return absl::OkStatus();
}

}  // namespace

bool TrustSettings::has_keys() const {
  for (const auto& [name, value] : FlagsOf(*this)) {
    if (!value.empty()) return true;
  }
  return false;
}

std::vector<std::string> TrustSettings::ToFlags() const {
  std::vector<std::string> flags;
  for (const auto& [name, value] : FlagsOf(*this)) {
    if (!value.empty()) flags.push_back(absl::StrCat("--", name, "=", value));
  }
  if (insecure) flags.push_back("--insecure");
  return flags;
}

absl::StatusOr<std::shared_ptr<const Trust>> TrustSettings::Open(
    PeerRole role, int index, Clock& clock) const {
  RETURN_IF_ERROR(CheckFlagsAgree(*this));
  if (!has_keys()) return nullptr;
  if (!token_file.empty()) {
    ASSIGN_OR_RETURN(const JobToken token, JobToken::Read(token_file),
                     _ << "--token_file");
    return Trust::OfToken(token, role, index, clock);
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Trust> trust, Trust::OfFiles(files, clock));
  const PeerIdentity& found = trust->identity();
  const bool is_own = found.role == role && found.index == index;
  const bool is_of_worker_beside = role == PeerRole::kChief &&
                                   found.role == PeerRole::kWorker &&
                                   found.index == 0;
  if (is_own || is_of_worker_beside) return trust;
  return absl::InvalidArgumentError(absl::StrCat(
      "--tls_certificate=", files.certificate, ": is ", found.ToString(),
      ", and this process is ", PeerRoleName(role), "/", index));
}

absl::Status CheckMayBeReached(const TrustSettings& settings,
                               const TaskConfig& config) {
  if (settings.has_keys() || settings.insecure || !config.cluster) {
    return absl::OkStatus();
  }
  for (const auto& [role, tasks] : config.cluster->jobs) {
    for (const auto& [index, address] : tasks) {
      if (IsLoopback(address)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          RoleName(role), "/", index, " is at ", address,
          ", and this task has no keys: ", kWaysToHaveKeys,
          "; or --insecure, if everybody who reaches these ports may end the "
          "job and read the model"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMayListen(const TrustSettings& settings,
                            absl::string_view flag,
                            const std::string& address) {
  if (address.empty() || IsLoopback(address) || settings.has_keys() ||
      settings.insecure) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--", flag, "=", address,
      ": others can reach it, and this task has no keys: ", kWaysToHaveKeys,
      "; or --insecure; or listen on 127.0.0.1"));
}

}  // namespace parasol
