#include "loop/peers/contributions.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cluster/replica_sum/vector_sum.h"

namespace parasol {
namespace {

// Elements that are added before the next ones: a sum may lie where one of its
// contributions does.
constexpr size_t kBlock = 2048;

std::string ReplicasOf(const std::vector<Contribution>& contributions) {
  return absl::StrJoin(contributions, ", ",
                       [](std::string* out, const Contribution& contribution) {
                         absl::StrAppend(out, contribution.replica);
                       });
}

}  // namespace

absl::Status CheckContributions(absl::string_view what,
                                const std::vector<Contribution>& contributions,
                                absl::Span<const float> sum,
                                const ReplicaRange& replicas) {
  bool are_replicas = std::ssize(contributions) == replicas.count;
  for (int i = 0; are_replicas && i < replicas.count; ++i) {
    are_replicas = contributions[i].replica == replicas.first + i;
  }
  if (!are_replicas) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": contributions of replicas ", ReplicasOf(contributions),
        ", but this process has replicas ", replicas.first, " to ",
        replicas.first + replicas.count - 1, ": give one of each, in order"));
  }
  for (const Contribution& contribution : contributions) {
    if (contribution.values.size() == sum.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": replica ", contribution.replica, " brings ",
        contribution.values.size(), " elements to a sum of ", sum.size(),
        ": return values of one shape from all replicas"));
  }
  return absl::OkStatus();
}

void AddInOrder(const std::vector<Contribution>& contributions,
                absl::Span<float> sum) {
  std::array<float, kBlock> block;
  for (size_t first = 0; first < sum.size(); first += kBlock) {
    const absl::Span<float> target = sum.subspan(first, kBlock);
    const absl::Span<float> added(block.data(), target.size());
    std::copy_n(contributions.front().values.begin() + first, added.size(),
                added.begin());
    for (size_t i = 1; i < contributions.size(); ++i) {
      AddTo(added, reinterpret_cast<const std::byte*>(
                       contributions[i].values.data() + first));
    }
    std::copy(added.begin(), added.end(), target.begin());
  }
}

}  // namespace parasol
