#include "loop/peers/peers_of.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/client/task_identity.h"
#include "cluster/collective/socket_endpoint.h"
#include "cluster/rpc/server.h"
#include "cluster/trust/job_token.h"
#include "loop/peers/chief_peers.h"
#include "loop/peers/group_peers.h"
#include "loop/peers/lone_peers.h"
#include "loop/peers/ps_peers.h"
#include "loop/peers/start_anew.h"

namespace parasol {
namespace {

absl::Status CheckWorkers(const TaskConfig& config) {
  const std::map<int, std::string>& workers =
      config.cluster->tasks(Role::kWorker);
  if (!workers.empty() && workers.rbegin()->first + 1 == std::ssize(workers)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cluster.worker: the largest index is ",
      workers.empty() ? -1 : workers.rbegin()->first, ", but there are ",
      workers.size(), " workers: a program has all from 0 on"));
}

absl::Status CheckClusterWithoutPs(const TaskConfig& config) {
  const ClusterSpec& cluster = *config.cluster;
  if (cluster.num_tasks(Role::kChief) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(cluster.chief_key,
                     ": worker 0 of a program with a loop of its own "
                     "writes its checkpoints; leave the chief out"));
  }
  return CheckWorkers(config);
}

absl::Status CheckClusterWithPs(const TaskConfig& config) {
  if (config.strategy && *config.strategy != StrategyKind::kParameterServer) {
    return absl::UnimplementedError(absl::StrCat(
        "--strategy=", StrategyName(*config.strategy), ": with ps a program ",
        "with a loop of its own runs under parameter_server; leave the ",
        config.num_ps, " ps out, or choose that"));
  }
  if (config.cluster->num_tasks(Role::kChief) == 0) {
    return absl::InvalidArgumentError(
        "cluster.chief: is not there, but ps are: add a chief, which runs the "
        "program, too");
  }
  return CheckWorkers(config);
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

// Returns the peers of a task of a cluster with ps.
absl::StatusOr<std::unique_ptr<Peers>> PeersAtPs(
    const TaskConfig& config, const ProcessSettings& settings) {
  RETURN_IF_ERROR(CheckClusterWithPs(config));
  const bool leads = config.role == Role::kChief;
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const Trust> trust,
      settings.trust.Open(leads ? PeerRole::kChief : PeerRole::kWorker,
                          config.index, Clock::Real()));
  if (leads) {
    return std::make_unique<ChiefPeers>(
        ChiefPeers::Options{.config = config,
                            .replicas = settings.replicas,
                            .settings = settings.program,
                            .trust = trust,
                            .peer_timeout = settings.peer_timeout},
        Clock::Real());
  }
  return std::make_unique<PsPeers>(
      PsPeers::Options{
          .task = NewTask(config),
          .workers = config.num_workers,
          .chief_address = config.chief_address,
          .listen_address = RpcServer::ListenAddress(config.address),
          .replicas = settings.replicas,
          .settings = settings.program,
          .trust = trust,
          .peer_timeout = settings.peer_timeout},
      Clock::Real());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Peers>> PeersOf(
    const TaskConfig& config, const ProcessSettings& settings) {
  if (settings.program.local_steps && config.num_ps == 0) {
    return absl::InvalidArgumentError(
        "--local_steps: there are no parameter servers to exchange with; add "
        "ps and a chief to the cluster, or leave it out");
  }
  if (!config.cluster) {
    return std::make_unique<LonePeers>(settings.replicas, settings.program,
                                       Clock::Real());
  }
  RETURN_IF_ERROR(CheckMayBeReached(settings.trust, config));
  if (config.num_ps > 0) return PeersAtPs(config, settings);
  RETURN_IF_ERROR(CheckClusterWithoutPs(config));
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
