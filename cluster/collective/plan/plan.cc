#include "cluster/collective/plan/plan.h"

#include "base/log.h"

namespace parasol {

int CollectivePlan::Receive(int peer, uint64_t piece, const Region& region,
                            absl::Span<const int> after) {
  const int step = Add({.kind = CollectiveStep::Kind::kReceive,
                        .region = region,
                        .peer = peer,
                        .piece = piece},
                       after);
  if (step >= 0) CHECK(receives_.insert({{peer, piece}, step}).second);
  return step;
}

int CollectivePlan::Send(int peer, uint64_t piece, const Region& region,
                         absl::Span<const int> after) {
  return Add({.kind = CollectiveStep::Kind::kSend,
              .region = region,
              .peer = peer,
              .piece = piece},
             after);
}

int CollectivePlan::Sum(const Region& region, std::vector<Region> addends,
                        absl::Span<const int> after) {
  return Add({.kind = CollectiveStep::Kind::kSum,
              .region = region,
              .addends = std::move(addends)},
             after);
}

std::optional<int> CollectivePlan::FindReceive(int peer, uint64_t piece) const {
  const auto it = receives_.find({peer, piece});
  if (it == receives_.end()) return std::nullopt;
  return it->second;
}

int CollectivePlan::Add(CollectiveStep step, absl::Span<const int> after) {
  if (step.region.bytes == 0) return -1;
  const int number = static_cast<int>(steps_.size());
  for (const int earlier : after) {
    if (earlier < 0) continue;
    steps_[earlier].next.push_back(number);
    ++step.waits_for;
  }
  steps_.push_back(std::move(step));
  return number;
}

}  // namespace parasol
