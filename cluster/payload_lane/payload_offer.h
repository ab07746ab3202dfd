#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/trust/mutual_proof.h"

// How a lane is opened. A worker's Exchange call has kPayloadLaneKey in its
// metadata; the ps answers under the same key, at once, with a PayloadOffer or
// kNoPayloadLane. The worker connects to the offered port of the machine that
// it reached, names the offer, and both prove that they have its secret, which
// only the call has carried (cluster/trust/mutual_proof): PayloadHello(), the
// ps's nonce and proof, the worker's proof, kPayloadWelcome. From then on the
// stream's messages travel as frames on that connection; the call says how the
// stream ends.
namespace parasol {

inline constexpr char kPayloadLaneKey[] = "parasol-lane";
// The worker's request: the version of the frames that it speaks.
inline constexpr char kPayloadLaneRequest[] = "tcp/3";
inline constexpr char kNoPayloadLane[] = "none";

// The first bytes on a lane from the worker, before the offer's id and a nonce,
// and the ps's last ones.
inline constexpr absl::string_view kPayloadHello = "parasol lane 3\r\n";
inline constexpr absl::string_view kPayloadWelcome = "welcome\n";

using PayloadId = std::array<uint8_t, 16>;

// The answer of a ps that takes a lane: "45123 0a1b… 2c3d…".
struct PayloadOffer {
  int port = 0;
  PayloadId id = {};
  std::string secret = {};  // 16 bytes

  // Returns an offer with an id and a secret of the kernel's generator.
  static PayloadOffer Draw(int port);

  std::string ToString() const;
  //   InvalidArgument  `text` is no offer.
  static absl::StatusOr<PayloadOffer> Parse(absl::string_view text);
};

inline constexpr size_t kPayloadHelloBytes =
    kPayloadHello.size() + sizeof(PayloadId) + kNonceBytes;
inline constexpr size_t kPayloadChallengeBytes = kNonceBytes + kProofBytes;

// Returns the first bytes of a lane's connection.
std::string MakePayloadHello(const PayloadId& id, absl::string_view nonce);
// Returns the id in a hello of kPayloadHelloBytes.
PayloadId IdInPayloadHello(absl::string_view hello);

// Makes the socket of a lane: sends at once, and notices a peer whose machine
// is gone within a lease.
absl::Status SetPayloadSocketOptions(int fd);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_
