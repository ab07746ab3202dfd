#include "loop/peers/peers_of.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/collective/socket_endpoint.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/job_token.h"
#include "loop/peers/group_peers.h"
#include "loop/peers/lone_peers.h"
#include "loop/peers/start_anew.h"

namespace parasol {
namespace {

absl::Status CheckCluster(const TaskConfig& config) {
  const ClusterSpec& cluster = *config.cluster;
  if (cluster.num_tasks(Role::kPs) > 0) {
    return absl::UnimplementedError(absl::StrCat(
        "cluster.ps: a program with a loop of its own has its variables on its "
        "workers; leave the ",
        cluster.num_tasks(Role::kPs), " ps out"));
  }
  if (cluster.num_tasks(Role::kChief) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(cluster.chief_key,
                     ": worker 0 of a program with a loop of its own "
                     "writes its checkpoints; leave the chief out"));
  }
  const std::map<int, std::string>& workers = cluster.tasks(Role::kWorker);
  if (workers.rbegin()->first + 1 != std::ssize(workers)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.worker: the largest index is ",
                     workers.rbegin()->first, ", but there are ",
                     workers.size(), " workers: a program has all from 0 on"));
  }
  return absl::OkStatus();
}

// Returns bytes that only processes with the job's token know.
absl::StatusOr<std::string> SecretOf(const TrustSettings& trust) {
  if (trust.token_file.empty()) return "";
  ASSIGN_OR_RETURN(const JobToken token, JobToken::Read(trust.token_file));
  const DerivedKey key = token.Derive("parasol program group");
  return std::string(key.begin(), key.end());
}

// Sums go by connections, and on one machine by lanes in memory: what they are
// is compared with what the others do, which sums in shared memory are not.
absl::StatusOr<std::unique_ptr<CollectiveEndpoint>> Listen(
    const std::string& address, const TrustSettings& trust) {
  const std::string listening = RpcServer::ListenAddress(address);
  const size_t colon = listening.rfind(':');
  int port = 0;
  CHECK(absl::SimpleAtoi(listening.substr(colon + 1), &port)) << listening;
  SocketEndpoint::Options options;
  options.shared_memory = false;
  if (!trust.files.certificate.empty()) options.certificates = trust.files;
  return SocketEndpoint::Start(listening.substr(0, colon), port, options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peers>> PeersOf(
    const TaskConfig& config, const ProcessSettings& settings) {
  if (!config.cluster) {
    return std::make_unique<LonePeers>(settings.replicas, settings.program,
                                       Clock::Real());
  }
  RETURN_IF_ERROR(CheckCluster(config));
  RETURN_IF_ERROR(CheckMayBeReached(settings.trust, config));
  GroupPeers::Options options;
  options.rank = config.index;
  for (const auto& [index, address] : config.cluster->tasks(Role::kWorker)) {
    options.addresses.push_back(address);
  }
  ASSIGN_OR_RETURN(options.secret, SecretOf(settings.trust));
  options.replicas = settings.replicas;
  options.settings = settings.program;
  options.listen = [address = config.address, trust = settings.trust] {
    return Listen(address, trust);
  };
  options.kept = FileKept();
  options.restart = StartAnew;
  options.peer_timeout = settings.peer_timeout;
  return std::make_unique<GroupPeers>(std::move(options), Clock::Real());
}

}  // namespace parasol
