#ifndef PARASOL_LOOP_PEERS_ITERATION_MESSAGE_H_
#define PARASOL_LOOP_PEERS_ITERATION_MESSAGE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop/peers/peers.h"

namespace parasol {

// What each process tells the others at the end of an iteration.
struct IterationMessage {
  Iteration iteration;
  bool stops = false;  // the process was told to stop
};

std::string ToBytes(const IterationMessage& message);

// Returns the message of all processes together, of which each one's is given
// by rank: the sums of what they have done, and whether one of them stops.
//   InvalidArgument  one has ended another iteration, or sends what is no
//                    message; names it.
absl::StatusOr<IterationMessage> AddUp(const std::vector<std::string>& by_rank);

}  // namespace parasol

#endif  // PARASOL_LOOP_PEERS_ITERATION_MESSAGE_H_
