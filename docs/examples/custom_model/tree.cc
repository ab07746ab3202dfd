// An all-reduce along a tree of ranks. Rank r has the children width * r + 1 …
// width * r + width. Each rank adds its contributions and its children's sums
// and sends the result to its parent; rank 0 then has the sums, which travel
// back down. A pack takes 2 log(P) message times, and a rank sends it to its
// width children at most, where a ring takes 2 (P - 1) message times.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "ml/custom/custom_parameters.h"

namespace parasol {
namespace {

// Makes the plan of one rank, chunk by chunk.
class TreeRank {
 public:
  TreeRank(const Reduction& reduction, int width, int rank)
      : own_(static_cast<int>(reduction.layout[rank].size())),
        parent_(rank == 0 ? -1 : (rank - 1) / width) {
    const int ranks = static_cast<int>(reduction.layout.size());
    const int64_t first = int64_t{rank} * width + 1;
    for (int64_t child = first; child < std::min<int64_t>(first + width, ranks);
         ++child) {
      children_.push_back(static_cast<int>(child));
    }
    const size_t bytes = reduction.count * sizeof(float);
    for (size_t at = 0; at < bytes; at += reduction.chunk_bytes) {
      AddChunk(at, std::min(reduction.chunk_bytes, bytes - at));
    }
  }

  CollectivePlan Take() { return std::move(plan_); }

 private:
  void AddChunk(size_t at, size_t bytes) {
    const uint64_t up = 2 * chunks_;
    const uint64_t down = up + 1;
    ++chunks_;
    std::vector<Region> addends;
    std::vector<int> received;
    for (int i = 0; i < own_; ++i) addends.push_back({i, at, bytes});
    for (const int child : children_) {
      addends.push_back(TakeScratch(bytes));
      received.push_back(plan_.Receive(child, up, addends.back()));
    }
    const Region sums = {own_, at, bytes};
    int has_sums;
    if (parent_ < 0) {
      has_sums = plan_.Sum(sums, addends, received);
    } else {
      const Region part = TakeScratch(bytes);
      const int added = plan_.Sum(part, addends, received);
      plan_.Send(parent_, up, part, {added});
      // The sums may overwrite a contribution, which has been read when `added`
      // is done; the parent can't send them before.
      has_sums = plan_.Receive(parent_, down, sums, {added});
    }
    for (const int child : children_) {
      plan_.Send(child, down, sums, {has_sums});
    }
  }

  Region TakeScratch(size_t bytes) {
    const Region region = {own_ + 1, plan_.scratch_bytes, bytes};
    plan_.scratch_bytes += bytes;
    return region;
  }

  const int own_;     // number of contributions
  const int parent_;  // -1: the root
  std::vector<int> children_;
  uint64_t chunks_ = 0;
  CollectivePlan plan_;
};

class Tree : public AllReducePlanner {
 public:
  explicit Tree(int width) : width_(width) {}

  std::string name() const override {
    return absl::StrCat("tree(width=", width_, ")");
  }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return TreeRank(reduction, width_, rank).Take();
  }

 private:
  const int width_;
};

absl::StatusOr<std::unique_ptr<const AllReducePlanner>> MakeTree(
    const job::Custom& spec) {
  CustomParameters parameters(spec.parameter());
  const double width = parameters.Number("width", 2, 1, 1024);
  RETURN_IF_ERROR(parameters.CheckAllRead());
  return std::make_unique<Tree>(static_cast<int>(width));
}

const CustomAllReduceRegistration kRegistration("tree", MakeTree);

}  // namespace
}  // namespace parasol
