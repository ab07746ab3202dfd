#ifndef PARASOL_CLUSTER_LANE_LANE_OPENING_H_
#define PARASOL_CLUSTER_LANE_LANE_OPENING_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// How a lane is opened. A worker's Exchange call has kLaneKey in its metadata;
// the ps answers under the same key, at once, with a LaneOffer or kNoLane. The
// worker connects to the offered port of the machine that it reached, sends the
// secret, and receives kLaneWelcome. From then on the stream's messages travel
// as frames on that connection; the call says how the stream ends.
namespace parasol {

inline constexpr char kLaneKey[] = "parasol-lane";
// The worker's request: the version of the frames that it speaks.
inline constexpr char kLaneRequest[] = "tcp/1";
inline constexpr char kNoLane[] = "none";

// The first bytes on a lane from the worker, before the secret, and the ps's
// answer.
inline constexpr absl::string_view kLaneHello = "parasol lane 1\r\n";
inline constexpr absl::string_view kLaneWelcome = "welcome\n";

using LaneSecret = std::array<uint8_t, 16>;

// The answer of a ps that takes a lane: "45123 0a1b…".
struct LaneOffer {
  int port = 0;
  LaneSecret secret = {};

  std::string ToString() const;
  //   InvalidArgument  `text` is no offer.
  static absl::StatusOr<LaneOffer> Parse(absl::string_view text);
};

// Returns 16 random bytes of the kernel's generator.
LaneSecret DrawLaneSecret();

// Makes the socket of a lane: sends at once, and notices a peer whose machine
// is gone within a lease.
absl::Status SetLaneOptions(int fd);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_LANE_LANE_OPENING_H_
