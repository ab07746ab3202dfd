#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_LANE_SOCKET_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_LANE_SOCKET_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/descriptor.h"
#include "cluster/trust/tls_channel.h"
#include "cluster/trust/trust.h"

namespace parasol {

// The connection of a lane: in TLS where the job has certificates, otherwise in
// clear text. No call blocks. One thread may receive while another one sends.
class LaneSocket {
 public:
  // Takes a connected socket, whose bytes travel in clear text.
  LaneSocket(Descriptor socket)  // NOLINT: as it is
      : socket_(std::move(socket)) {}

  // Takes a connected socket to `peer`. `trust` may be null: there are no keys.
  LaneSocket(Descriptor socket, const Trust* trust, PeerSide own,
             const ExpectedPeer& peer);

  int descriptor() const {
    return tls_ != nullptr ? tls_->socket().get() : socket_.get();
  }

  // Receives bytes to the pieces, in order. Returns how many; 0: none are there
  // now.
  //   Unavailable      the peer has closed the connection, or it is broken.
  //   Unauthenticated  another task than the peer has answered.
  absl::StatusOr<size_t> Receive(absl::Span<iovec> pieces);

  // Sends bytes of the pieces. Returns how many were taken; 0: there is no room
  // now, or no byte. Errors are Receive()'s.
  absl::StatusOr<size_t> Send(absl::Span<const iovec> pieces);

  // Returns true if bytes that were taken wait for room. Send() sends them
  // first.
  bool has_unsent() const { return tls_ != nullptr && tls_->has_unsent(); }

 private:
  Descriptor socket_;                // closed if tls_ has it
  std::unique_ptr<TlsChannel> tls_;  // null: in clear text
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_LANE_SOCKET_H_
