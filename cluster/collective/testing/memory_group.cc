#include "cluster/collective/testing/memory_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace parasol {

MemoryGroup::MemoryGroup(const CollectiveGroup& group, Clock& clock)
    : group_(group), clock_(clock), members_(group.ranks.size()) {}

bool MemoryGroup::IsSame(const CollectiveGroup& group) const {
  return group.secret == group_.secret &&
         std::equal(group.ranks.begin(), group.ranks.end(),
                    group_.ranks.begin(), group_.ranks.end(),
                    [](const CollectiveRank& a, const CollectiveRank& b) {
                      return a.address == b.address && a.replicas == b.replicas;
                    });
}

void MemoryGroup::Enter(int rank) {
  absl::MutexLock lock(&mu_);
  members_[rank].is_there = true;
}

absl::Status MemoryGroup::AwaitAll(absl::Duration limit,
                                   const bool& cancelled) {
  absl::MutexLock lock(&mu_);
  const auto is_over = [&] {
    mu_.AssertReaderHeld();
    return cancelled ||
           std::all_of(members_.begin(), members_.end(),
                       [](const Member& member) { return member.is_there; });
  };
  clock_.AwaitWithTimeout(mu_, absl::Condition(&is_over), limit);
  if (cancelled) return absl::CancelledError("the join was cancelled");
  std::vector<std::string> missing;
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].is_there) continue;
    missing.push_back(group_.NameOf(static_cast<int>(rank)));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      "collective group of epoch ", group_.epoch, ": not there after ",
      absl::FormatDuration(limit), ": ", absl::StrJoin(missing, ", ")));
}

void MemoryGroup::CancelWait(bool& cancelled) {
  absl::MutexLock lock(&mu_);
  cancelled = true;
}

void MemoryGroup::Begin(int rank, Part part, const Work& work) {
  std::vector<Ended> ended;
  std::vector<Part> parts;
  {
    absl::MutexLock lock(&mu_);
    ++members_[rank].pending;
    if (members_[rank].status.ok()) {
      parts = Add(rank, std::move(part), ended);
    } else {
      ended.push_back({rank, std::move(part.done), members_[rank].status});
    }
  }
  if (!parts.empty()) work(parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    ended.push_back(
        {static_cast<int>(i), std::move(parts[i].done), absl::OkStatus()});
  }
  Complete(std::move(ended));
}

std::vector<MemoryGroup::Part> MemoryGroup::Add(int rank, Part part,
                                                std::vector<Ended>& ended) {
  const uint64_t sequence = members_[rank].begun++;
  Operation& operation = operations_[sequence];
  operation.parts.resize(members_.size());
  operation.has_begun.resize(members_.size());
  absl::Status wrong;
  for (size_t other = 0; other < members_.size(); ++other) {
    const Member& member = members_[other];
    const std::string name = group_.NameOf(static_cast<int>(other));
    if (operation.has_begun[other] &&
        operation.parts[other].kind != part.kind) {
      wrong = absl::InvalidArgumentError(
          absl::StrCat("operation ", sequence, " is ", part.kind, " at ",
                       group_.NameOf(rank), " but ",
                       operation.parts[other].kind, " at ", name));
    }
    if (!member.status.ok() && member.begun <= sequence) {
      wrong = RankLostError(group_, static_cast<int>(other),
                            "it has left the group");
    }
  }
  operation.parts[rank] = std::move(part);
  operation.has_begun[rank] = true;
  if (!wrong.ok()) {
    EndAll(wrong, ended);
    return {};
  }
  if (++operation.begun < members_.size()) return {};
  return std::move(operations_.extract(sequence).mapped().parts);
}

void MemoryGroup::End(int rank, const absl::Status& why,
                      std::vector<Ended>& ended) {
  Member& member = members_[rank];
  if (!member.status.ok()) return;
  member.status = why;
  for (auto& [sequence, operation] : operations_) {
    if (!operation.has_begun[rank]) continue;
    ended.push_back({rank, std::move(operation.parts[rank].done), why});
  }
}

void MemoryGroup::EndAll(const absl::Status& why, std::vector<Ended>& ended) {
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    End(static_cast<int>(rank), why, ended);
  }
  operations_.clear();
}

void MemoryGroup::Complete(std::vector<Ended> ended) {
  for (Ended& each : ended) {
    each.done(each.status);
    each.done = nullptr;
    absl::MutexLock lock(&mu_);
    --members_[each.rank].pending;
  }
}

absl::Status MemoryGroup::Await(int rank) {
  absl::MutexLock lock(&mu_);
  const auto is_idle = [&] {
    mu_.AssertReaderHeld();
    return members_[rank].pending == 0;
  };
  mu_.Await(absl::Condition(&is_idle));
  return members_[rank].status;
}

void MemoryGroup::Abort(const absl::Status& why) {
  std::vector<Ended> ended;
  {
    absl::MutexLock lock(&mu_);
    EndAll(why, ended);
  }
  Complete(std::move(ended));
}

void MemoryGroup::Leave(int rank, const absl::Status& why) {
  std::vector<Ended> ended;
  {
    absl::MutexLock lock(&mu_);
    End(rank, why, ended);
    // Others wait for this rank, or for its memory.
    if (!operations_.empty()) {
      EndAll(RankLostError(group_, rank, "it has left the group"), ended);
    }
  }
  Complete(std::move(ended));
  Await(rank).IgnoreError();
}

std::vector<int> MemoryGroup::Awaited(int rank) const {
  absl::MutexLock lock(&mu_);
  std::vector<int> awaited;
  for (const auto& [sequence, operation] : operations_) {
    if (!operation.has_begun[rank]) continue;
    for (size_t other = 0; other < members_.size(); ++other) {
      if (operation.has_begun[other]) continue;
      awaited.push_back(static_cast<int>(other));
    }
    break;
  }
  return awaited;
}

absl::Status MemoryGroup::status(int rank) const {
  absl::MutexLock lock(&mu_);
  return members_[rank].status;
}

}  // namespace parasol
