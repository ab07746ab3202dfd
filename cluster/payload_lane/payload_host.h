#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_HOST_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_HOST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "cluster/payload_lane/lane_socket.h"
#include "cluster/payload_lane/payload_offer.h"
#include "cluster/payload_lane/payload_port.h"
#include "cluster/payload_lane/receive_allowance.h"
#include "cluster/payload_lane/socket_loop.h"
#include "cluster/trust/trust.h"

namespace parasol {

// The lanes of one ps: the port that takes them, and the threads that serve
// them. Thread-safe.
class PayloadHost {
 public:
  // Number of lanes at once. Each takes a descriptor, of which a process has a
  // limited number.
  static constexpr int kMaxLanes = 4096;

  // Messages that are being received on all lanes together have about
  // `receive_bytes` (ReceiveAllowance). Lanes are in TLS if `trust` has
  // certificates. Errors are PayloadPort::Start()'s.
  static absl::StatusOr<std::unique_ptr<PayloadHost>> Start(
      const std::string& host, int port, int threads,
      int64_t receive_bytes = INT64_MAX,
      std::shared_ptr<const Trust> trust = nullptr);

  int port() const { return listener_->port(); }

  // Returns the loop for another lane, or null if there are kMaxLanes. Each
  // loop has as many as the others. Call LaneEnded() for each one.
  SocketLoop* NextLoop();
  void LaneEnded() { --lanes_; }

  // Returns the ps's end of a connection that was taken, for the stream of
  // `peer`.
  LaneSocket SocketOf(Descriptor taken, const ExpectedPeer& peer) const {
    return LaneSocket(std::move(taken), trust_.get(), PeerSide::kServer, peer);
  }

  ReceiveAllowance& allowance() { return allowance_; }

  PayloadOffer Expect(PayloadPort::Taken taken) {
    return listener_->Expect(std::move(taken));
  }
  bool Forget(const PayloadId& id) { return listener_->Forget(id); }

 private:
  PayloadHost(std::unique_ptr<PayloadPort> listener, int threads,
              int64_t receive_bytes, std::shared_ptr<const Trust> trust);

  const std::shared_ptr<const Trust> trust_;  // null: there are no keys
  ReceiveAllowance allowance_;
  std::atomic<int> lanes_ = 0;
  std::vector<std::unique_ptr<SocketLoop>> loops_;
  std::atomic<size_t> next_ = 0;
  // Ends first: it hands connections to the loops.
  const std::unique_ptr<PayloadPort> listener_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_HOST_H_
