#include "cluster/collective/plan/combined_plan.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/collective/plan/ordered_sum.h"
#include "cluster/collective/plan/whole_value.h"

namespace parasol {

// Makes the list: a node is a sum, or a message with both of its steps.
class CombinedPlan::Combiner {
 public:
  Combiner(const Reduction& reduction, std::vector<CollectivePlan> plans)
      : reduction_(reduction), plans_(std::move(plans)) {}

  absl::StatusOr<CombinedPlan> Combine() {
    RETURN_IF_ERROR(MakeNodes());
    MakeEdges();
    RETURN_IF_ERROR(PutInOrder());
    LeaveOutUnused();
    PlaceMemory();
    CombinedPlan combined;
    for (const size_t node : order_) {
      if (nodes_[node].is_used) combined.actions_.push_back(ActionOf(node));
    }
    combined.workspace_elements_ = workspace_elements_;
    return combined;
  }

 private:
  struct Node {
    // The rank and step that writes, and of a message the one that is read.
    int rank = 0;
    int step = 0;
    int from = -1;
    int send = -1;
    std::vector<size_t> next = {};
    int waits_for = 0;
    bool is_used = false;
  };
  static constexpr size_t kNone = -1;

  const CollectiveStep& StepOf(int rank, int step) const {
    return plans_[rank].steps()[step];
  }

  absl::Status MakeNodes() {
    node_of_.resize(plans_.size());
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      node_of_[rank].assign(plans_[rank].steps().size(), kNone);
    }
    for (int rank = 0; rank < static_cast<int>(plans_.size()); ++rank) {
      for (int i = 0; i < static_cast<int>(node_of_[rank].size()); ++i) {
        const CollectiveStep& step = StepOf(rank, i);
        if (step.kind == CollectiveStep::Kind::kSum) {
          node_of_[rank][i] = nodes_.size();
          nodes_.push_back({.rank = rank, .step = i});
        } else if (step.kind == CollectiveStep::Kind::kSend) {
          RETURN_IF_ERROR(AddMessage(rank, i));
        }
      }
    }
    return CheckAllReceived();
  }

  absl::Status AddMessage(int from, int send) {
    const CollectiveStep& sent = StepOf(from, send);
    const std::optional<int> receive =
        plans_[sent.peer].FindReceive(from, sent.piece);
    const bool is_awaited =
        receive.has_value() && node_of_[sent.peer][*receive] == kNone &&
        StepOf(sent.peer, *receive).region.bytes == sent.region.bytes;
    if (!is_awaited) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rank ", from, " sends piece ", sent.piece, " of ", sent.region.bytes,
          " bytes to rank ", sent.peer, ", which waits for no such piece"));
    }
    node_of_[from][send] = node_of_[sent.peer][*receive] = nodes_.size();
    nodes_.push_back(
        {.rank = sent.peer, .step = *receive, .from = from, .send = send});
    return absl::OkStatus();
  }

  absl::Status CheckAllReceived() const {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      for (size_t i = 0; i < node_of_[rank].size(); ++i) {
        if (node_of_[rank][i] != kNone) continue;
        const CollectiveStep& step = plans_[rank].steps()[i];
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", rank, " waits for piece ", step.piece,
                         " of rank ", step.peer, ", which does not send it"));
      }
    }
    return absl::OkStatus();
  }

  void MakeEdges() {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      for (size_t i = 0; i < node_of_[rank].size(); ++i) {
        Node& node = nodes_[node_of_[rank][i]];
        for (const int next : plans_[rank].steps()[i].next) {
          node.next.push_back(node_of_[rank][next]);
          ++nodes_[node.next.back()].waits_for;
        }
      }
    }
  }

  absl::Status PutInOrder() {
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_[node].waits_for == 0) order_.push_back(node);
    }
    for (size_t done = 0; done < order_.size(); ++done) {
      for (const size_t next : nodes_[order_[done]].next) {
        if (--nodes_[next].waits_for == 0) order_.push_back(next);
      }
    }
    if (order_.size() == nodes_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError("steps wait for each other");
  }

  // What is used comes before its users.
  void LeaveOutUnused() {
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      Node& node = nodes_[*it];
      node.is_used = node.rank == 0 ||
                     std::any_of(node.next.begin(), node.next.end(),
                                 [&](size_t n) { return nodes_[n].is_used; });
    }
  }

  // The workspace has each rank's scratch, and the sums of all ranks but 0.
  void PlaceMemory() {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      first_contribution_.push_back(contributions_);
      contributions_ += reduction_.layout[rank].size();
      sums_at_.push_back(workspace_elements_);
      if (rank > 0) workspace_elements_ += reduction_.count;
      scratch_at_.push_back(workspace_elements_);
      workspace_elements_ += plans_[rank].scratch_bytes / sizeof(float);
    }
  }

  Place PlaceOf(int rank, const Region& region) const {
    const size_t first = region.first / sizeof(float);
    const auto buffer = static_cast<size_t>(region.buffer);
    const size_t own = reduction_.layout[rank].size();
    if (buffer < own) return {first_contribution_[rank] + buffer, first};
    if (buffer > own) return {contributions_ + 1, scratch_at_[rank] + first};
    if (rank == 0) return {contributions_, first};
    return {contributions_ + 1, sums_at_[rank] + first};
  }

  Action ActionOf(size_t index) const {
    const Node& node = nodes_[index];
    const CollectiveStep& step = StepOf(node.rank, node.step);
    Action action = {.to = PlaceOf(node.rank, step.region),
                     .count = step.region.bytes / sizeof(float)};
    if (node.from >= 0) {
      const Region& sent = StepOf(node.from, node.send).region;
      action.addends.push_back(PlaceOf(node.from, sent));
    }
    for (const Region& addend : step.addends) {
      action.addends.push_back(PlaceOf(node.rank, addend));
    }
    return action;
  }

  const Reduction& reduction_;
  const std::vector<CollectivePlan> plans_;
  std::vector<Node> nodes_;
  std::vector<std::vector<size_t>> node_of_;  // by rank and step
  std::vector<size_t> order_;
  size_t contributions_ = 0;
  size_t workspace_elements_ = 0;
  // By rank: its first contribution, and places in the workspace.
  std::vector<size_t> first_contribution_;
  std::vector<size_t> sums_at_;
  std::vector<size_t> scratch_at_;
};

absl::StatusOr<CombinedPlan> CombinedPlan::Make(const AllReducePlanner& planner,
                                                const Reduction& reduction) {
  const std::string name = absl::StrCat("all-reduce ", planner.name(), " of ",
                                        reduction.count, " elements");
  std::vector<CollectivePlan> plans;
  for (size_t rank = 0; rank < reduction.layout.size(); ++rank) {
    const int number = static_cast<int>(rank);
    plans.push_back(planner.AllReduce(reduction, number));
    RETURN_IF_ERROR(CheckPlan(plans.back(), reduction, number)) << name;
  }
  ASSIGN_OR_RETURN(CombinedPlan combined,
                   Combiner(reduction, std::move(plans)).Combine(), _ << name);
  RETURN_IF_ERROR(combined.Try(reduction)) << name;
  return combined;
}

absl::Status CombinedPlan::Try(const Reduction& reduction) const {
  std::vector<int> replicas;
  std::vector<std::vector<float>> values;
  std::vector<const float*> contributions;
  for (const std::vector<int>& of_rank : reduction.layout) {
    replicas.insert(replicas.end(), of_rank.begin(), of_rank.end());
  }
  for (const int replica : replicas) {
    std::vector<float>& each = values.emplace_back(reduction.count);
    for (size_t i = 0; i < each.size(); ++i) each[i] = WholeValue(replica, i);
    contributions.push_back(each.data());
  }
  std::vector<float> sums(reduction.count);
  std::vector<float> workspace(workspace_elements_);
  Run(contributions, absl::MakeSpan(sums), absl::MakeSpan(workspace));
  for (size_t i = 0; i < sums.size(); ++i) {
    float expected = 0;
    for (const int replica : replicas) expected += WholeValue(replica, i);
    if (sums[i] == expected) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("element ", i, " is ", sums[i], ", must be ", expected));
  }
  return absl::OkStatus();
}

void CombinedPlan::Run(absl::Span<const float* const> contributions,
                       absl::Span<float> sum,
                       absl::Span<float> workspace) const {
  const auto written = [&](const Place& place) {
    float* const memory =
        place.memory == contributions.size() ? sum.data() : workspace.data();
    return memory + place.first;
  };
  const auto read = [&](const Place& place) -> const float* {
    return place.memory < contributions.size()
               ? contributions[place.memory] + place.first
               : written(place);
  };
  absl::InlinedVector<const float*, 16> addends;
  for (const Action& action : actions_) {
    addends.clear();
    for (const Place& place : action.addends) addends.push_back(read(place));
    SumInOrder(addends, {written(action.to), action.count});
  }
}

}  // namespace parasol
