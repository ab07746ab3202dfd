#include "loop/peers/local_peers.h"

#include "loop/peers/contributions.h"

namespace parasol {

void LocalPeers::BeginAllReduce(absl::string_view what,
                                std::vector<Contribution> contributions,
                                absl::Span<float> sum) {
  const absl::Status right = CheckContributions(
      what, contributions, sum, {.first = 0, .count = replicas_});
  if (right.ok()) {
    AddInOrder(contributions, sum);
  } else if (failure_.ok()) {
    failure_ = right;
  }
}

absl::StatusOr<std::vector<std::string>> LocalPeers::AllGather(
    absl::string_view, absl::string_view own) {
  return std::vector<std::string>{std::string(own)};
}

}  // namespace parasol
