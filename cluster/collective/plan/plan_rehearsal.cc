#include "cluster/collective/plan/plan_rehearsal.h"

#include <algorithm>
#include <cstring>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace parasol {

void PlanRehearsal::AddRank(std::shared_ptr<const CollectivePlan> plan,
                            std::vector<std::byte*> buffers) {
  plans_.push_back(plan);
  runs_.push_back(
      std::make_unique<PlanRun>(std::move(plan), std::move(buffers)));
  traffic_.push_back(0);
  has_begun_.push_back(false);
  not_begun_.push_back(static_cast<int>(not_begun_.size()));
}

absl::Status PlanRehearsal::CarryOut() {
  std::shuffle(not_begun_.begin(), not_begun_.end(), random_);
  while (true) {
    const Link* const link = ChooseLink();
    // A rank may begin when others have sent all that they can.
    if (!not_begun_.empty() && (link == nullptr || random_() % 8 == 0)) {
      BeginRank();
    } else if (!arrived_.empty() && (link == nullptr || random_() % 2 == 0)) {
      FreeMessage();
    } else if (link == nullptr) {
      return CheckAllComplete();
    } else {
      const absl::Status delivered = Deliver(*link);
      if (!delivered.ok()) return delivered;
    }
  }
}

void PlanRehearsal::BeginRank() {
  const int rank = not_begun_.back();
  not_begun_.pop_back();
  has_begun_[rank] = true;
  std::vector<PlanRun::Send> sends;
  runs_[rank]->Begin(sends);
  Queue(rank, sends);
}

void PlanRehearsal::Queue(int from, const std::vector<PlanRun::Send>& sends) {
  for (const PlanRun::Send& send : sends) {
    traffic_[from] += send.bytes.size();
    traffic_[send.peer] += send.bytes.size();
    links_[{from, send.peer}].push_back({send.step, send.piece, send.bytes});
  }
}

void PlanRehearsal::FreeMessage() {
  std::swap(arrived_[random_() % arrived_.size()], arrived_.back());
  const auto [rank, step] = arrived_.back();
  arrived_.pop_back();
  std::vector<PlanRun::Send> sends;
  runs_[rank]->Sent(step, sends);
  Queue(rank, sends);
}

const PlanRehearsal::Link* PlanRehearsal::ChooseLink() {
  ready_.clear();
  for (const auto& [link, queue] : links_) {
    if (has_begun_[link.second]) ready_.push_back(link);
  }
  return ready_.empty() ? nullptr : &ready_[random_() % ready_.size()];
}

absl::Status PlanRehearsal::Deliver(Link link) {
  const auto [from, to] = link;
  std::deque<Message>& queue = links_[link];
  const Message message = queue.front();
  queue.pop_front();
  if (queue.empty()) links_.erase(link);
  const absl::StatusOr<std::byte*> target =
      runs_[to]->Target(from, message.piece, message.bytes.size());
  if (!target.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank ", from, " sends to rank ", to, ": ", target.status().message()));
  }
  std::memcpy(*target, message.bytes.data(), message.bytes.size());
  arrived_.push_back({from, message.step});
  std::vector<PlanRun::Send> sends;
  runs_[to]->Received(from, message.piece, sends);
  Queue(to, sends);
  return absl::OkStatus();
}

absl::Status PlanRehearsal::CheckAllComplete() const {
  for (size_t rank = 0; rank < runs_.size(); ++rank) {
    if (runs_[rank]->is_complete()) continue;
    for (const CollectiveStep& step : plans_[rank]->steps()) {
      if (step.kind != CollectiveStep::Kind::kReceive) continue;
      const auto due =
          runs_[rank]->Target(step.peer, step.piece, step.region.bytes);
      if (!due.ok()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " waits for piece ", step.piece,
                       " of rank ", step.peer, ", which does not send it"));
    }
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " has steps that wait for each other"));
  }
  return absl::OkStatus();
}

}  // namespace parasol
