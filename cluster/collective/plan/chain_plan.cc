#include "cluster/collective/plan/chain_plan.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/collective/plan/owner_plan.h"

namespace parasol {
namespace {

// Neighbouring replicas of one rank: a link of the chain.
struct Run {
  int rank = 0;
  std::vector<int> indices;
};

std::vector<Run> RunsOf(const ReplicaLayout& layout) {
  std::vector<Run> runs;
  for (const OrderedReplica& replica : InOrder(layout)) {
    if (runs.empty() || runs.back().rank != replica.rank) {
      runs.push_back({replica.rank, {}});
    }
    runs.back().indices.push_back(replica.index);
  }
  return runs;
}

// Returns the ranks in the order in which the sums reach them: back along the
// chain from its end, which has them first, then those without replicas.
std::vector<int> WayBack(const ReplicaLayout& layout,
                         const std::vector<Run>& runs) {
  std::vector<int> way;
  const auto add = [&](int rank) {
    if (std::count(way.begin(), way.end(), rank) == 0) way.push_back(rank);
  };
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) add(run->rank);
  for (size_t rank = 0; rank < layout.size(); ++rank) {
    add(static_cast<int>(rank));
  }
  return way;
}

// Makes the plan of one rank.
class ChainPlanner {
 public:
  ChainPlanner(const Reduction& reduction, int rank)
      : reduction_(reduction),
        runs_(RunsOf(reduction.layout)),
        way_(WayBack(reduction.layout, runs_)),
        rank_(rank),
        own_(static_cast<int>(reduction.layout[rank].size())),
        place_(std::find(way_.begin(), way_.end(), rank) - way_.begin()) {
    own_runs_ = std::count_if(runs_.begin(), runs_.end(), [&](const Run& run) {
      return run.rank == rank_;
    });
  }

  CollectivePlan Make() {
    const size_t bytes = reduction_.count * sizeof(float);
    plan_.scratch_bytes = own_runs_ * reduction_.chunk_bytes +
                          (own_runs_ > 1 ? own_runs_ * bytes : 0);
    for (size_t first = 0; first < bytes; first += reduction_.chunk_bytes) {
      const size_t chunk = std::min(reduction_.chunk_bytes, bytes - first);
      MakeChunk({own_, first, chunk}, first / reduction_.chunk_bytes);
    }
    return std::move(plan_);
  }

 private:
  bool IsLast(size_t run) const { return run + 1 == runs_.size(); }

  // Returns memory for what comes from the run before. All chunks use the same:
  // one is added before the next one comes.
  Region ReceiveTo(size_t run, size_t bytes) {
    return {own_ + 1, OwnRunsBefore(run) * reduction_.chunk_bytes, bytes};
  }
  // Returns memory for a partial sum that can't lie where the sums do: the
  // contribution of a later run may.
  Region PartialOf(size_t run, const Region& sums) {
    const size_t pack = reduction_.count * sizeof(float);
    return {own_ + 1,
            own_runs_ * reduction_.chunk_bytes + OwnRunsBefore(run) * pack +
                sums.first,
            sums.bytes};
  }
  size_t OwnRunsBefore(size_t run) const {
    return std::count_if(runs_.begin(), runs_.begin() + run,
                         [&](const Run& each) { return each.rank == rank_; });
  }

  void MakeChunk(const Region& sums, size_t chunk) {
    int have_sums = -1;
    if (runs_.empty()) {
      plan_.Sum(sums, {});
      return;
    }
    for (size_t run = 0; run < runs_.size(); ++run) {
      if (runs_[run].rank == rank_) have_sums = AddRun(run, sums, chunk);
    }
    const uint64_t piece = PieceOf(runs_.size(), chunk);
    if (place_ > 0) {
      have_sums = plan_.Receive(way_[place_ - 1], piece, sums);
    }
    if (place_ + 1 < way_.size()) {
      plan_.Send(way_[place_ + 1], piece, sums, {have_sums});
    }
  }

  // Adds the rank's contributions of a run to what comes from the run before,
  // and sends that on. Returns the step of the addition.
  int AddRun(size_t run, const Region& sums, size_t chunk) {
    std::vector<Region> addends;
    int received = -1;
    if (run > 0) {
      addends.push_back(ReceiveTo(run, sums.bytes));
      received = plan_.Receive(runs_[run - 1].rank, PieceOf(run - 1, chunk),
                               addends.back(), {last_use_[run]});
    }
    for (const int index : runs_[run].indices) {
      addends.push_back({index, sums.first, sums.bytes});
    }
    const bool in_place = IsLast(run) || own_runs_ == 1;
    const Region partial = in_place ? sums : PartialOf(run, sums);
    const int added = plan_.Sum(partial, std::move(addends), {received});
    last_use_[run] = added;
    if (!IsLast(run)) {
      plan_.Send(runs_[run + 1].rank, PieceOf(run, chunk), partial, {added});
    }
    return added;
  }

  static uint64_t PieceOf(size_t run, size_t chunk) {
    return (static_cast<uint64_t>(run) << 32) + chunk;
  }

  const Reduction& reduction_;
  const std::vector<Run> runs_;
  const std::vector<int> way_;
  const int rank_;
  const int own_;
  const size_t place_;  // in the way back
  size_t own_runs_ = 0;
  // The steps of the chunk before that used what a run receives to.
  std::vector<int> last_use_ = std::vector<int>(runs_.size(), -1);
  CollectivePlan plan_;
};

}  // namespace

CollectivePlan ChainPlan(const Reduction& reduction, int rank) {
  return ChainPlanner(reduction, rank).Make();
}

size_t ChainTraffic(const ReplicaLayout& layout) {
  const std::vector<Run> runs = RunsOf(layout);
  const std::vector<int> way = WayBack(layout, runs);
  std::vector<size_t> traffic(layout.size());
  for (size_t run = 0; run + 1 < runs.size(); ++run) {
    ++traffic[runs[run].rank];
    ++traffic[runs[run + 1].rank];
  }
  for (size_t place = 0; place + 1 < way.size(); ++place) {
    ++traffic[way[place]];
    ++traffic[way[place + 1]];
  }
  return *std::max_element(traffic.begin(), traffic.end());
}

}  // namespace parasol
