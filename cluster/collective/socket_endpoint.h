#ifndef PARASOL_CLUSTER_COLLECTIVE_SOCKET_ENDPOINT_H_
#define PARASOL_CLUSTER_COLLECTIVE_SOCKET_ENDPOINT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/group_protocol.h"
#include "cluster/collective/rank_port.h"
#include "cluster/collective/socket_collective.h"
#include "cluster/trust/certificate_files.h"
#include "cluster/trust/tls_tunnels.h"

namespace parasol {

// An endpoint that other processes reach at a port. Thread-safe.
class SocketEndpoint : public CollectiveEndpoint {
 public:
  struct Options {
    GroupProtocol::Options protocol;
    // Ranks of one machine add in memory that they share, if all ranks of the
    // group are there and the system lets them; otherwise sums travel on
    // connections, too.
    bool shared_memory = true;
    // Pieces of all other operations between ranks of one machine travel in
    // memory that both see, from a few KiB on (PieceLane).
    bool piece_lanes = true;
    // Certificates by which connections are encrypted, and other ranks known as
    // workers of the job; nullopt: connections are in clear text.
    std::optional<CertificateFiles> certificates = std::nullopt;
  };

  // Listens on `host` and `port` (0: the system chooses one). `clock` must
  // outlive the endpoint.
  //   InvalidArgument  the host is not this machine, or the port is in use, or
  //                    the certificates are of no use.
  static absl::StatusOr<std::unique_ptr<SocketEndpoint>> Start(
      const std::string& host, int port, const Options& options,
      Clock& clock = Clock::Real());

  int port() const { return port_->port(); }

  absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void CancelJoin(int64_t epoch) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  SocketEndpoint(std::unique_ptr<RankPort> port,
                 std::unique_ptr<TlsTunnels> tunnels, const Options& options,
                 Clock& clock)
      : tunnels_(std::move(tunnels)),
        port_(std::move(port)),
        options_(options),
        clock_(clock) {}

  // Ends the older group, and lets the newer one's ranks in.
  absl::Status TakePlace(const CollectiveGroup& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns a connection to each other rank.
  absl::StatusOr<std::map<int, Descriptor>> ConnectAll(
      const CollectiveGroup& group, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Puts a tunnel in the place of each connection, if there are certificates.
  absl::Status Encrypt(const CollectiveGroup& group,
                       std::map<int, Descriptor>& connected);
  absl::StatusOr<std::unique_ptr<Collective>> MakeCollective(
      const CollectiveGroup& group, std::map<int, Descriptor> connected);
  // Connects to the ranks that are not in `connected` and that this one calls;
  // `missing` has why others are not there.
  //   FailedPrecondition  one will never take the connection.
  absl::Status CallMissing(const CollectiveGroup& group, absl::Duration limit,
                           std::map<int, Descriptor>& connected,
                           std::map<int, std::string>& missing);
  // Waits a moment. Returns Cancelled after CancelJoin().
  absl::Status Pause() ABSL_LOCKS_EXCLUDED(mu_);
  bool IsCancelled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return cancelled_ >= epoch_;
  }

  const std::unique_ptr<TlsTunnels> tunnels_;  // null: no certificates
  const std::unique_ptr<RankPort> port_;
  const Options options_;
  Clock& clock_;
  const std::shared_ptr<NewestGroup> newest_ = std::make_shared<NewestGroup>();

  absl::Mutex mu_;
  int64_t epoch_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  int64_t cancelled_ ABSL_GUARDED_BY(mu_) = INT64_MIN;  // the newest epoch
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_SOCKET_ENDPOINT_H_
