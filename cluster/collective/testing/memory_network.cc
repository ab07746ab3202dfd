#include "cluster/collective/testing/memory_network.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/collective/contribution_memory.h"
#include "cluster/collective/plan/ordered_sum.h"
#include "cluster/collective/testing/memory_group.h"

namespace parasol {
namespace {

using Part = MemoryGroup::Part;

void SumForAll(std::vector<Part>& parts, size_t count) {
  std::vector<Contribution> all;
  for (const Part& part : parts) {
    all.insert(all.end(), part.contributions.begin(), part.contributions.end());
  }
  std::sort(all.begin(), all.end(),
            [](const Contribution& a, const Contribution& b) {
              return a.replica < b.replica;
            });
  std::vector<const float*> addends;
  for (const Contribution& each : all) addends.push_back(each.values.data());
  // A rank's sum may lie where its contribution does.
  std::vector<float> sum(count);
  SumInOrder(addends, absl::MakeSpan(sum));
  for (const Part& part : parts) {
    std::copy_n(sum.begin() + part.sum_range.first, part.sum_range.count,
                part.sum.begin());
  }
}

void GatherForAll(std::vector<Part>& parts) {
  std::vector<std::string> gathered;
  for (Part& part : parts) gathered.push_back(std::move(part.bytes));
  for (const Part& part : parts) *part.gathered = gathered;
}

void CopyToAll(std::vector<Part>& parts, int source) {
  const absl::Span<const std::byte> bytes = parts[source].target;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (static_cast<int>(rank) == source || parts[rank].target.empty()) {
      continue;
    }
    std::memcpy(parts[rank].target.data(), bytes.data(), bytes.size());
  }
}

// One rank's end of a MemoryGroup.
class MemoryCollective : public Collective {
 public:
  MemoryCollective(CollectiveGroup group, std::shared_ptr<MemoryGroup> shared)
      : group_(std::move(group)), shared_(std::move(shared)) {}
  ~MemoryCollective() override {
    shared_->Leave(group_.own_rank,
                   absl::CancelledError("the rank has left the group"));
  }

  const CollectiveGroup& group() const override { return group_; }

  void AllReduce(std::vector<Contribution> contributions, absl::Span<float> sum,
                 Done done) override {
    const size_t count = sum.size();
    CheckContributions(group_, contributions, count);
    Begin({.kind = absl::StrCat("all-reduce of ", count, " elements"),
           .contributions = std::move(contributions),
           .sum = sum,
           .sum_range = {.first = 0, .count = count},
           .done = std::move(done)},
          [count](std::vector<Part>& parts) { SumForAll(parts, count); });
  }

  void ReduceScatter(std::vector<Contribution> contributions, size_t count,
                     absl::Span<float> slice, Done done) override {
    const ElementRange range =
        SliceOf(count, static_cast<int>(group_.ranks.size()), group_.own_rank);
    CheckContributions(group_, contributions, count);
    CHECK_EQ(slice.size(), range.count);
    Begin({.kind = absl::StrCat("reduce-scatter of ", count, " elements"),
           .contributions = std::move(contributions),
           .sum = slice,
           .sum_range = range,
           .done = std::move(done)},
          [count](std::vector<Part>& parts) { SumForAll(parts, count); });
  }

  void AllGather(absl::string_view own, std::vector<std::string>* gathered,
                 Done done) override {
    Begin({.kind = "all-gather",
           .bytes = std::string(own),
           .gathered = gathered,
           .done = std::move(done)},
          GatherForAll);
  }

  void Broadcast(int source, const std::vector<int>& receivers,
                 absl::Span<std::byte> bytes, Done done) override {
    const std::string to =
        receivers.empty() ? "all" : absl::StrJoin(receivers, ",");
    Begin({.kind = absl::StrCat("broadcast of rank ", source, " to ", to),
           .target = bytes,
           .done = std::move(done)},
          [source](std::vector<Part>& parts) { CopyToAll(parts, source); });
  }

  absl::Status Await() override { return shared_->Await(group_.own_rank); }
  std::vector<int> Awaited() const override {
    return shared_->Awaited(group_.own_rank);
  }
  void Abort(const absl::Status& why) override { shared_->Abort(why); }
  absl::Status status() const override {
    return shared_->status(group_.own_rank);
  }
  std::shared_ptr<float[]> AllocateContribution(size_t count) override {
    return AllocateElements(count);
  }

 private:
  void Begin(Part part, const MemoryGroup::Work& work) {
    shared_->Begin(group_.own_rank, std::move(part), work);
  }

  const CollectiveGroup group_;
  const std::shared_ptr<MemoryGroup> shared_;
};

}  // namespace

class MemoryEndpoint : public CollectiveEndpoint {
 public:
  MemoryEndpoint(std::string address, MemoryNetwork& network)
      : address_(std::move(address)), network_(network) {}

  absl::StatusOr<std::unique_ptr<Collective>> Join(
      const CollectiveGroup& group, absl::Duration limit) override {
    RETURN_IF_ERROR(CheckGroup(group));
    ASSIGN_OR_RETURN(const std::shared_ptr<MemoryGroup> shared,
                     network_.GroupOf(group));
    RETURN_IF_ERROR(TakePlace(group, shared));
    const absl::Status status = shared->AwaitAll(limit, cancelled_);
    absl::MutexLock lock(&mu_);
    joining_ = nullptr;
    RETURN_IF_ERROR(status);
    return std::make_unique<MemoryCollective>(group, shared);
  }

  void CancelJoin(int64_t epoch) override {
    absl::MutexLock lock(&mu_);
    cancelled_epoch_ = std::max(cancelled_epoch_, epoch);
    if (joining_ != nullptr && epoch >= epoch_) {
      joining_->CancelWait(cancelled_);
    }
  }

 private:
  absl::Status TakePlace(const CollectiveGroup& group,
                         const std::shared_ptr<MemoryGroup>& shared) {
    absl::MutexLock lock(&mu_);
    if (group.epoch <= epoch_) {
      return absl::FailedPreconditionError(
          absl::StrCat(address_, " has joined a group of epoch ", epoch_,
                       ", not before ", group.epoch, ": use a larger epoch"));
    }
    if (const auto older = older_.lock()) {
      older->Leave(older_rank_, absl::CancelledError(absl::StrCat(
                                    "a group of epoch ", group.epoch,
                                    " has taken this one's place")));
    }
    epoch_ = group.epoch;
    older_ = shared;
    older_rank_ = group.own_rank;
    joining_ = shared;
    cancelled_ = cancelled_epoch_ >= group.epoch;
    shared->Enter(group.own_rank);
    return absl::OkStatus();
  }

  const std::string address_;
  MemoryNetwork& network_;
  absl::Mutex mu_;
  int64_t epoch_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  int64_t cancelled_epoch_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  std::weak_ptr<MemoryGroup> older_ ABSL_GUARDED_BY(mu_);
  int older_rank_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<MemoryGroup> joining_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ = false;  // guarded by the mutex of the group that is joined
};

std::unique_ptr<CollectiveEndpoint> MemoryNetwork::MakeEndpoint(
    const std::string& address) {
  return std::make_unique<MemoryEndpoint>(address, *this);
}

absl::StatusOr<std::shared_ptr<MemoryGroup>> MemoryNetwork::GroupOf(
    const CollectiveGroup& group) {
  absl::MutexLock lock(&mu_);
  std::weak_ptr<MemoryGroup>& known = groups_[group.epoch];
  std::shared_ptr<MemoryGroup> shared = known.lock();
  if (shared == nullptr) {
    shared = std::make_shared<MemoryGroup>(group, clock_);
    known = shared;
  }
  if (shared->IsSame(group)) return shared;
  return absl::InvalidArgumentError(
      absl::StrCat("collective group of epoch ", group.epoch, ": ",
                   group.own().address, " has other ranks than the others"));
}

}  // namespace parasol
