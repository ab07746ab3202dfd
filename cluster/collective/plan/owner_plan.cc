#include "cluster/collective/plan/owner_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cluster/collective/plan/slice.h"

namespace parasol {
namespace {

// Numbers of messages that carry sums; contributions have smaller ones.
constexpr uint64_t kSums = uint64_t{1} << 32;

// Makes the plan of one rank.
class OwnerPlanner {
 public:
  OwnerPlanner(const Reduction& reduction, int rank, OwnerResult result)
      : reduction_(reduction),
        order_(InOrder(reduction.layout)),
        rank_(rank),
        ranks_(static_cast<int>(reduction.layout.size())),
        own_(static_cast<int>(reduction.layout[rank].size())),
        result_(result) {}

  CollectivePlan Make() {
    size_t longest = 0;
    for (int owner = 0; owner < ranks_; ++owner) {
      longest = std::max(longest, ChunksOf(owner));
    }
    // Chunk by chunk, and each rank begins with another one: nobody is sent to
    // by all at once.
    for (size_t chunk = 0; chunk < longest; ++chunk) {
      for (int d = 1; d < ranks_; ++d) Contribute((rank_ + d) % ranks_, chunk);
    }
    for (size_t chunk = 0; chunk < ChunksOf(rank_); ++chunk) Own(chunk);
    if (result_ == OwnerResult::kOwnSlice) return std::move(plan_);
    for (int d = 1; d < ranks_; ++d) ReceiveSums((rank_ + d) % ranks_);
    return std::move(plan_);
  }

 private:
  ElementRange Slice(int owner) const {
    return SliceOf(reduction_.count, ranks_, owner);
  }
  size_t ChunksOf(int owner) const {
    const size_t bytes = Slice(owner).count * sizeof(float);
    return (bytes + reduction_.chunk_bytes - 1) / reduction_.chunk_bytes;
  }
  // Returns a chunk of an owner's slice, in a buffer that has all slices.
  Region ChunkOf(int owner, size_t chunk, int buffer) const {
    const ElementRange slice = Slice(owner);
    const size_t end = slice.count * sizeof(float);
    if (chunk >= ChunksOf(owner)) return {};
    const size_t first = chunk * reduction_.chunk_bytes;
    return {buffer, slice.first * sizeof(float) + first,
            std::min(reduction_.chunk_bytes, end - first)};
  }

  // Sends the owner the contributions to a chunk.
  void Contribute(int owner, size_t chunk) {
    for (int i = 0; i < own_; ++i) {
      plan_.Send(owner, chunk * own_ + i, ChunkOf(owner, chunk, i));
    }
  }

  // Adds a chunk of the own slice, and sends the sums to all.
  void Own(size_t chunk) {
    Region sum = ChunkOf(rank_, chunk, own_);
    if (result_ == OwnerResult::kOwnSlice) {
      sum.first -= Slice(rank_).first * sizeof(float);
    }
    std::vector<Region> addends;
    std::vector<int> received;
    // What one other rank sends comes in order, and has been added when the
    // next chunk begins to come: all use the same memory, which stays in the
    // cache.
    const bool shares_memory = ranks_ == 2;
    size_t scratch = shares_memory ? 0 : plan_.scratch_bytes;
    for (const OrderedReplica& replica : order_) {
      if (replica.rank == rank_) {
        addends.push_back(ChunkOf(rank_, chunk, replica.index));
        continue;
      }
      addends.push_back({own_ + 1, scratch, sum.bytes});
      scratch += sum.bytes;
      const size_t theirs = reduction_.layout[replica.rank].size();
      received.push_back(
          plan_.Receive(replica.rank, chunk * theirs + replica.index,
                        addends.back(), {shares_memory ? summed_ : -1}));
    }
    plan_.scratch_bytes = std::max(plan_.scratch_bytes, scratch);
    summed_ = plan_.Sum(sum, std::move(addends), received);
    if (result_ == OwnerResult::kOwnSlice) return;
    for (int d = 1; d < ranks_; ++d) {
      plan_.Send((rank_ + d) % ranks_, kSums + chunk, sum, {summed_});
    }
  }

  void ReceiveSums(int owner) {
    for (size_t chunk = 0; chunk < ChunksOf(owner); ++chunk) {
      plan_.Receive(owner, kSums + chunk, ChunkOf(owner, chunk, own_));
    }
  }

  const Reduction& reduction_;
  const std::vector<OrderedReplica> order_;
  const int rank_;
  const int ranks_;
  const int own_;
  const OwnerResult result_;
  int summed_ = -1;  // the sum of the chunk before
  CollectivePlan plan_;
};

}  // namespace

CollectivePlan OwnerSlicesPlan(const Reduction& reduction, int rank,
                               OwnerResult result) {
  return OwnerPlanner(reduction, rank, result).Make();
}

}  // namespace parasol
