#include "cluster/collective/collective_group.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

constexpr char kLostRankUrl[] = "parasol/lost-rank";

absl::Status BadGroup(const CollectiveGroup& group, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("collective group of epoch ", group.epoch, ": ", why));
}

absl::Status CheckReplicas(const CollectiveGroup& group) {
  std::set<int> seen;
  for (size_t rank = 0; rank < group.ranks.size(); ++rank) {
    const std::vector<int>& replicas = group.ranks[rank].replicas;
    if (!std::is_sorted(replicas.begin(), replicas.end())) {
      return BadGroup(group, absl::StrCat("the replicas of ",
                                          group.NameOf(static_cast<int>(rank)),
                                          " are not in ascending order"));
    }
    for (const int replica : replicas) {
      if (!seen.insert(replica).second) {
        return BadGroup(group,
                        absl::StrCat("replica ", replica, " is there twice"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string CollectiveGroup::NameOf(int rank) const {
  return absl::StrCat("rank ", rank, " (", ranks[rank].address, ")");
}

int CollectiveGroup::replica_count() const {
  size_t count = 0;
  for (const CollectiveRank& rank : ranks) count += rank.replicas.size();
  return static_cast<int>(count);
}

ReplicaLayout CollectiveGroup::layout() const {
  ReplicaLayout layout;
  for (const CollectiveRank& rank : ranks) layout.push_back(rank.replicas);
  return layout;
}

std::vector<int> CollectiveGroup::machines() const {
  std::map<std::string, int> numbers;
  std::vector<int> machines;
  for (const CollectiveRank& rank : ranks) {
    const std::string host = rank.address.substr(0, rank.address.rfind(':'));
    machines.push_back(
        numbers.try_emplace(host, static_cast<int>(numbers.size()))
            .first->second);
  }
  return machines;
}

absl::Status CheckGroup(const CollectiveGroup& group) {
  if (group.ranks.empty() || group.ranks.size() > CollectiveGroup::kMaxRanks) {
    return BadGroup(group,
                    absl::StrCat(group.ranks.size(), " ranks, must be 1 to ",
                                 CollectiveGroup::kMaxRanks));
  }
  if (group.own_rank < 0 ||
      group.own_rank >= static_cast<int>(group.ranks.size())) {
    return BadGroup(group, absl::StrCat("the own rank ", group.own_rank,
                                        " is none of ", group.ranks.size()));
  }
  if (group.secret.size() > CollectiveGroup::kMaxSecretBytes) {
    return BadGroup(
        group,
        absl::StrCat("a secret of ", group.secret.size(), " bytes, must be ",
                     CollectiveGroup::kMaxSecretBytes, " at most"));
  }
  std::set<std::string> addresses;
  for (const CollectiveRank& rank : group.ranks) {
    if (!addresses.insert(rank.address).second) {
      return BadGroup(group, absl::StrCat("two ranks at ", rank.address));
    }
  }
  return CheckReplicas(group);
}

absl::Status RankLostError(const CollectiveGroup& group, int rank,
                           const std::string& why) {
  return WithLostRank(absl::UnavailableError(
                          absl::StrCat(group.NameOf(rank), " was lost: ", why)),
                      rank);
}

absl::Status WithLostRank(absl::Status status, int rank) {
  status.SetPayload(kLostRankUrl, absl::Cord(absl::StrCat(rank)));
  return status;
}

std::optional<int> LostRank(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kLostRankUrl);
  int rank;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) {
    return std::nullopt;
  }
  return rank;
}

}  // namespace parasol
