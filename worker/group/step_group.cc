#include "worker/group/step_group.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace parasol {
namespace {

// Makes the first rank the last one.
void PutFirstLast(StepGroup& group) {
  if (group.names.empty()) return;
  std::rotate(group.names.begin(), group.names.begin() + 1, group.names.end());
  std::vector<CollectiveRank>& ranks = group.collective.ranks;
  std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
  const int count = static_cast<int>(ranks.size());
  int& own = group.collective.own_rank;
  own = (own + count - 1) % count;
}

}  // namespace

StepGroup GroupOf(const wire::ClaimStepsResponse& answer,
                  uint64_t incarnation) {
  StepGroup group;
  group.version = answer.assignment_version();
  group.collective.epoch = group.version;
  group.collective.secret = answer.group_secret();
  for (const wire::GroupMember& member : answer.member()) {
    if (member.task().incarnation() == incarnation) {
      group.is_member = true;
      group.collective.own_rank = group.names.size();
      group.replicas.assign(member.replica().begin(), member.replica().end());
    }
    group.names.push_back(
        absl::StrCat(member.task().role(), "/", member.task().index()));
    group.collective.ranks.push_back(
        {.address = member.address(),
         .replicas = {member.replica().begin(), member.replica().end()}});
  }
  PutFirstLast(group);
  return group;
}

}  // namespace parasol
