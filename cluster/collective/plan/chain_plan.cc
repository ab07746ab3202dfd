#include "cluster/collective/plan/chain_plan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "cluster/collective/plan/owner_plan.h"
#include "cluster/collective/plan/slice.h"

namespace parasol {
namespace {

// Neighbouring replicas of one machine: a link of the chain of machines.
struct MachineRun {
  int machine = 0;
  std::vector<OrderedReplica> replicas = {};
};

// The machines of a reduction, and the ways of partial sums and of sums.
struct MachineChain {
  explicit MachineChain(const Reduction& reduction)
      : ranks(RanksOfMachines(reduction)), of_rank(reduction.layout.size()) {
    for (size_t machine = 0; machine < ranks.size(); ++machine) {
      for (const int rank : ranks[machine]) {
        of_rank[rank] = static_cast<int>(machine);
      }
      slices = std::max(slices, static_cast<int>(ranks[machine].size()));
    }
    for (const OrderedReplica& replica : InOrder(reduction.layout)) {
      const int machine = of_rank[replica.rank];
      if (runs.empty() || runs.back().machine != machine) {
        runs.push_back({.machine = machine});
      }
      runs.back().replicas.push_back(replica);
    }
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      AddToWay(run->machine);
    }
    for (size_t machine = 0; machine < ranks.size(); ++machine) {
      AddToWay(static_cast<int>(machine));
    }
  }

  void AddToWay(int machine) {
    if (std::count(way.begin(), way.end(), machine) == 0) {
      way.push_back(machine);
    }
  }
  // Returns the rank of a machine that adds a slice there.
  int OwnerOf(int machine, int slice) const {
    return ranks[machine][slice % ranks[machine].size()];
  }

  std::vector<std::vector<int>> ranks;  // of each machine
  std::vector<int> of_rank;
  int slices = 1;
  std::vector<MachineRun> runs;
  // The machines in the order in which the sums reach them: back along the
  // chain, then those without replicas.
  std::vector<int> way;
};

// What a message carries.
enum class Load : uint64_t { kContribution, kPartialSum, kSums };

// A chunk of a slice.
struct Chunk {
  int slice = 0;
  uint64_t number = 0;
  Region sums;  // where its sums are
};

// Makes the plan of one rank.
class ChainPlanner {
 public:
  ChainPlanner(const Reduction& reduction, int rank)
      : reduction_(reduction),
        chain_(reduction),
        rank_(rank),
        own_(static_cast<int>(reduction.layout[rank].size())),
        machine_(chain_.of_rank[rank]),
        place_(std::find(chain_.way.begin(), chain_.way.end(), machine_) -
               chain_.way.begin()),
        own_runs_(std::count_if(
            chain_.runs.begin(), chain_.runs.end(),
            [&](const MachineRun& run) { return run.machine == machine_; })) {}

  // All slices chunk by chunk, so that all links are used from the start.
  CollectivePlan Make() {
    const ElementRange longest = SliceOf(reduction_.count, chain_.slices, 0);
    const size_t chunk_bytes = reduction_.chunk_bytes;
    for (size_t first = 0; first < longest.count * sizeof(float);
         first += chunk_bytes) {
      for (int slice = 0; slice < chain_.slices; ++slice) {
        const ElementRange range =
            SliceOf(reduction_.count, chain_.slices, slice);
        const size_t bytes = range.count * sizeof(float);
        if (first >= bytes) continue;
        MakeChunk({.slice = slice,
                   .number = first / chunk_bytes,
                   .sums = {own_, range.first * sizeof(float) + first,
                            std::min(chunk_bytes, bytes - first)}});
      }
    }
    return std::move(plan_);
  }

 private:
  // What comes from the machine before.
  struct Received {
    Region memory = {};
    int last_use = -1;  // the step that has added the chunk before
  };

  bool IsOwn(const MachineRun& run) const {
    return std::all_of(
        run.replicas.begin(), run.replicas.end(),
        [&](const OrderedReplica& replica) { return replica.rank == rank_; });
  }
  bool IsLast(size_t run) const { return run + 1 == chain_.runs.size(); }

  static uint64_t PieceOf(Load load, const Chunk& chunk, uint64_t index) {
    return (static_cast<uint64_t>(load) << 62) |
           (static_cast<uint64_t>(chunk.slice) << 46) | (index << 30) |
           chunk.number;
  }

  Region TakeScratch(size_t bytes) {
    const Region region = {own_ + 1, plan_.scratch_bytes, bytes};
    plan_.scratch_bytes += bytes;
    return region;
  }

  // Returns the memory for what comes from the machine before. If the machine's
  // replicas of a run are all this rank's, the chunks of a slice use the same:
  // one is added when it comes, before the next one does.
  Received MemoryOf(size_t run, const Chunk& chunk) {
    if (!IsOwn(chain_.runs[run])) return {TakeScratch(chunk.sums.bytes)};
    Received& kept = received_[{run, chunk.slice}];
    if (kept.memory.bytes == 0) {
      kept.memory = TakeScratch(reduction_.chunk_bytes);
    }
    Received received = kept;
    received.memory.bytes = chunk.sums.bytes;
    return received;
  }

  // The sums come when all have their part of the chunk, so they may take the
  // place of what was sent or added.
  void MakeChunk(const Chunk& chunk) {
    if (chain_.runs.empty()) {
      plan_.Sum(chunk.sums, {});
      return;
    }
    const int owner = chain_.OwnerOf(machine_, chunk.slice);
    int have_sums = -1;
    for (size_t run = 0; run < chain_.runs.size(); ++run) {
      if (chain_.runs[run].machine != machine_) continue;
      if (owner == rank_) {
        have_sums = AddRun(run, chunk);
      } else {
        Contribute(run, owner, chunk);
      }
    }
    const uint64_t piece = PieceOf(Load::kSums, chunk, 0);
    if (owner != rank_) {
      plan_.Receive(owner, piece, chunk.sums);
    } else {
      PassOn(chunk, piece, have_sums);
    }
  }

  // Takes the sums from the machine before, if this is not the first to have
  // them, and gives them to the next one and to the machine's other ranks.
  void PassOn(const Chunk& chunk, uint64_t piece, int have_sums) {
    const auto owner_at = [&](size_t place) {
      return chain_.OwnerOf(chain_.way[place], chunk.slice);
    };
    if (place_ > 0) {
      have_sums = plan_.Receive(owner_at(place_ - 1), piece, chunk.sums);
    }
    if (place_ + 1 < chain_.way.size()) {
      plan_.Send(owner_at(place_ + 1), piece, chunk.sums, {have_sums});
    }
    for (const int rank : chain_.ranks[machine_]) {
      if (rank != rank_) plan_.Send(rank, piece, chunk.sums, {have_sums});
    }
  }

  // Sends the rank's contributions of a run to the machine's owner.
  void Contribute(size_t run, int owner, const Chunk& chunk) {
    for (const OrderedReplica& replica : chain_.runs[run].replicas) {
      if (replica.rank != rank_) continue;
      plan_.Send(owner, PieceOf(Load::kContribution, chunk, replica.index),
                 {replica.index, chunk.sums.first, chunk.sums.bytes});
    }
  }

  // Adds the machine's contributions of a run to what comes from the machine
  // before, and sends that on. Returns the step of the addition.
  int AddRun(size_t run, const Chunk& chunk) {
    const size_t bytes = chunk.sums.bytes;
    std::vector<Region> addends;
    std::vector<int> received;
    const auto receive = [&](int from, uint64_t piece) {
      addends.push_back(TakeScratch(bytes));
      received.push_back(plan_.Receive(from, piece, addends.back()));
    };
    const auto owner_of = [&](size_t of_run) {
      return chain_.OwnerOf(chain_.runs[of_run].machine, chunk.slice);
    };
    if (run > 0) {
      const Received before = MemoryOf(run, chunk);
      addends.push_back(before.memory);
      received.push_back(plan_.Receive(
          owner_of(run - 1), PieceOf(Load::kPartialSum, chunk, run - 1),
          before.memory, {before.last_use}));
    }
    for (const OrderedReplica& replica : chain_.runs[run].replicas) {
      if (replica.rank == rank_) {
        addends.push_back({replica.index, chunk.sums.first, bytes});
      } else {
        receive(replica.rank,
                PieceOf(Load::kContribution, chunk, replica.index));
      }
    }
    // The contribution of a later run may lie where the sums do.
    const bool in_place = IsLast(run) || own_runs_ == 1;
    const Region partial = in_place ? chunk.sums : TakeScratch(bytes);
    const int added = plan_.Sum(partial, std::move(addends), received);
    received_[{run, chunk.slice}].last_use = added;
    if (!IsLast(run)) {
      plan_.Send(owner_of(run + 1), PieceOf(Load::kPartialSum, chunk, run),
                 partial, {added});
    }
    return added;
  }

  const Reduction& reduction_;
  const MachineChain chain_;
  const int rank_;
  const int own_;
  const int machine_;
  const size_t place_;  // in the way of the sums
  const size_t own_runs_;
  std::map<std::pair<size_t, int>, Received> received_;  // key: run, slice
  CollectivePlan plan_;
};

}  // namespace

std::vector<std::vector<int>> RanksOfMachines(const Reduction& reduction) {
  std::map<int, std::vector<int>> ranks;
  for (size_t rank = 0; rank < reduction.layout.size(); ++rank) {
    const int number = static_cast<int>(rank);
    ranks[reduction.machines.empty() ? number : reduction.machines[rank]]
        .push_back(number);
  }
  std::vector<std::vector<int>> machines;
  for (auto& [machine, of_machine] : ranks) {
    machines.push_back(std::move(of_machine));
  }
  return machines;
}

CollectivePlan ChainPlan(const Reduction& reduction, int rank) {
  return ChainPlanner(reduction, rank).Make();
}

size_t ChainTraffic(const Reduction& reduction) {
  const MachineChain chain(reduction);
  std::vector<size_t> traffic(chain.ranks.size());
  for (size_t run = 0; run + 1 < chain.runs.size(); ++run) {
    ++traffic[chain.runs[run].machine];
    ++traffic[chain.runs[run + 1].machine];
  }
  for (size_t place = 0; place + 1 < chain.way.size(); ++place) {
    ++traffic[chain.way[place]];
    ++traffic[chain.way[place + 1]];
  }
  return *std::max_element(traffic.begin(), traffic.end());
}

}  // namespace parasol
