#include "cluster/collective/piece_lanes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "cluster/collective/piece_lane.h"

namespace parasol {
namespace {

// Returns the ranks that may have a lane to `rank`: the same from both ends.
std::vector<int> PeersOf(const std::vector<int>& machines, int rank) {
  std::vector<int> mates;
  for (size_t other = 0; other < machines.size(); ++other) {
    if (machines[other] == machines[rank]) {
      mates.push_back(static_cast<int>(other));
    }
  }
  // Of many only the first ones have lanes, to each other.
  if (mates.size() > kMaxLanes + 1) mates.resize(kMaxLanes + 1);
  if (std::count(mates.begin(), mates.end(), rank) == 0) return {};
  std::erase(mates, rank);
  return mates;
}

// Gathers a line for each peer of each rank: element r of the result has rank
// r's lines, in the order of its peers.
absl::StatusOr<std::vector<std::vector<std::string>>> GatherLines(
    Collective& collective, const std::vector<std::string>& own) {
  std::vector<std::string> gathered;
  absl::Status status;
  collective.AllGather(absl::StrJoin(own, "\n"), &gathered,
                       [&](const absl::Status& ended) { status = ended; });
  RETURN_IF_ERROR(collective.Await());
  RETURN_IF_ERROR(status);
  std::vector<std::vector<std::string>> lines;
  for (const std::string& each : gathered) {
    lines.push_back(absl::StrSplit(each, '\n'));
  }
  return lines;
}

// Returns what `rank` has said for `peer`; empty if that is nothing.
std::string LineFor(const std::vector<std::vector<std::string>>& lines,
                    const std::vector<int>& machines, int rank, int peer) {
  const std::vector<int> peers = PeersOf(machines, rank);
  const size_t index =
      std::find(peers.begin(), peers.end(), peer) - peers.begin();
  return index < lines[rank].size() && index < peers.size() ? lines[rank][index]
                                                            : "";
}

}  // namespace

absl::Status UseLanes(SocketCollective& sockets) {
  const std::vector<int> machines = sockets.group().machines();
  const std::vector<int> numbers = [&] {
    std::vector<int> sorted = machines;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }();
  const bool some_share =
      std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
  if (!some_share) return absl::OkStatus();
  const int rank = sockets.group().own_rank;
  const std::vector<int> peers = PeersOf(machines, rank);
  std::map<int, std::unique_ptr<PieceLane>> lanes;
  std::vector<std::string> offers;
  for (const int peer : peers) {
    absl::StatusOr<std::unique_ptr<PieceLane>> lane = PieceLane::Create();
    offers.push_back(lane.ok() ? (*lane)->offer() : "");
    if (lane.ok()) lanes[peer] = *std::move(lane);
  }
  ASSIGN_OR_RETURN(const std::vector<std::vector<std::string>> offered,
                   GatherLines(sockets, offers));
  std::vector<std::string> answers;
  for (const int peer : peers) {
    const auto lane = lanes.find(peer);
    const bool opened =
        lane != lanes.end() &&
        lane->second->Open(LineFor(offered, machines, peer, rank)).ok();
    answers.push_back(opened ? "yes" : "no");
    // The peer may give pieces as soon as it has heard the answer.
    if (opened) sockets.UseLane(peer, std::move(lane->second));
  }
  ASSIGN_OR_RETURN(const std::vector<std::vector<std::string>> answered,
                   GatherLines(sockets, answers));
  std::vector<int> both;
  for (size_t i = 0; i < peers.size(); ++i) {
    if (answers[i] != "yes") continue;
    if (LineFor(answered, machines, peers[i], rank) != "yes") continue;
    both.push_back(peers[i]);
  }
  sockets.SendByLanes(both);
  return absl::OkStatus();
}

}  // namespace parasol
