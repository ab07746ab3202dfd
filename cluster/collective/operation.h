#ifndef PARASOL_CLUSTER_COLLECTIVE_OPERATION_H_
#define PARASOL_CLUSTER_COLLECTIVE_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/collective/collective.h"
#include "cluster/collective/collective_group.h"
#include "cluster/collective/operation_spec.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "cluster/collective/plan/plan.h"
#include "cluster/collective/plan/plan_run.h"

namespace parasol {

// The caller's memory of an operation; which of it is used depends on the kind.
struct OperationMemory {
  std::vector<Contribution> contributions = {};
  absl::Span<float> sum = {};
  std::string own = {};  // gathered of this rank
  std::vector<std::string>* gathered = nullptr;
  absl::Span<std::byte> bytes = {};
  std::vector<int> receivers = {};  // all that receive; not the source
};

// An operation that this rank has begun, until it is complete.
struct Operation {
  uint64_t sequence = 0;
  OperationSpec spec;
  OperationMemory memory;
  Collective::Done done;
  // The other ranks' words. The own entries are unused.
  std::vector<bool> has_begun = {};
  std::vector<bool> is_ready = {};
  int begun = 0;
  std::vector<size_t> sizes = {};     // gathered, by rank
  std::vector<uint64_t> checks = {};  // OperationSpec::check, by rank
  // Null until it is known what is to be done.
  std::unique_ptr<PlanRun> run = nullptr;
  std::vector<std::byte> scratch = {};
  // Sends to ranks that are not ready.
  std::vector<PlanRun::Send> withheld = {};

  // Returns a rank whose bytes are not those that it has said to give; nullopt
  // if there is none. Requires that all bytes have come to `own_rank`.
  std::optional<int> FindDamaged(int own_rank) const;
};

// The making of operations' plans: keeps the plans of sums for the next time,
// and the memory that operations add in.
class OperationMaker {
 public:
  explicit OperationMaker(const CollectiveGroup& group)
      : layout_(group.layout()),
        machines_(group.machines()),
        rank_(group.own_rank),
        planner_(group.planner) {}

  // Sets `run`, and for an all-gather the caller's strings to their sizes.
  //   InvalidArgument  the planner's plan can't be carried out.
  absl::Status MakeRun(Operation& operation);
  // Takes back the memory of an operation that is complete.
  void Recycle(Operation& operation);

  // Returns the algorithm that suits an all-reduce of `elements` float32, in
  // messages of `chunk_bytes` bytes.
  ReductionAlgorithm Choose(uint64_t elements, uint64_t chunk_bytes);

 private:
  static constexpr size_t kMaxPlans = 256;
  static constexpr size_t kMaxSpare = 4;

  Reduction ReductionOf(uint64_t elements, uint64_t chunk_bytes) const {
    return {.layout = layout_,
            .count = elements,
            .chunk_bytes = chunk_bytes,
            .machines = machines_};
  }
  absl::StatusOr<std::shared_ptr<const CollectivePlan>> PlanOf(
      const OperationSpec& spec);
  absl::StatusOr<CollectivePlan> MakeSumPlan(const OperationSpec& spec) const;
  std::vector<std::byte> TakeScratch(size_t bytes);
  absl::Status RunSum(Operation& operation);
  void RunGather(Operation& operation);
  void RunBroadcast(Operation& operation);

  const ReplicaLayout layout_;
  const std::vector<int> machines_;
  const int rank_;
  const std::shared_ptr<const AllReducePlanner> planner_;  // null: none
  // Results of Choose(), by its arguments.
  std::map<std::pair<uint64_t, uint64_t>, ReductionAlgorithm> chosen_;
  // Plans of sums, by what OperationSpec::Encode() gives.
  std::map<std::string, std::shared_ptr<const CollectivePlan>> plans_;
  std::vector<std::vector<std::byte>> spare_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_OPERATION_H_
