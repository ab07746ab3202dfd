#ifndef PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_
#define PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// How a lane is opened. A worker's Exchange call has kPayloadLaneKey in its
// metadata; the ps answers under the same key, at once, with a PayloadOffer or
// kNoPayloadLane. The worker connects to the offered port of the machine that
// it reached, sends the secret, and receives kPayloadWelcome. From then on the
// stream's messages travel as frames on that connection; the call says how the
// stream ends.
namespace parasol {

inline constexpr char kPayloadLaneKey[] = "parasol-lane";
// The worker's request: the version of the frames that it speaks.
inline constexpr char kPayloadLaneRequest[] = "tcp/2";
inline constexpr char kNoPayloadLane[] = "none";

// The first bytes on a lane from the worker, before the secret, and the ps's
// answer.
inline constexpr absl::string_view kPayloadHello = "parasol lane 2\r\n";
inline constexpr absl::string_view kPayloadWelcome = "welcome\n";

using PayloadSecret = std::array<uint8_t, 16>;

// The answer of a ps that takes a lane: "45123 0a1b…".
struct PayloadOffer {
  int port = 0;
  PayloadSecret secret = {};

  std::string ToString() const;
  //   InvalidArgument  `text` is no offer.
  static absl::StatusOr<PayloadOffer> Parse(absl::string_view text);
};

// Returns 16 random bytes of the kernel's generator.
PayloadSecret DrawPayloadSecret();

// Makes the socket of a lane: sends at once, and notices a peer whose machine
// is gone within a lease.
absl::Status SetPayloadSocketOptions(int fd);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PAYLOAD_LANE_PAYLOAD_OFFER_H_
