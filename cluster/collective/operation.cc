#include "cluster/collective/operation.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "cluster/collective/plan/copy_plans.h"
#include "cluster/collective/plan/reduction_plans.h"

namespace parasol {

std::optional<int> Operation::FindDamaged(int own_rank) const {
  const auto is_damaged = [this](size_t rank, absl::string_view bytes) {
    return bytes.size() <= OperationSpec::kMaxCheckedBytes &&
           CheckOf(bytes) != checks[rank];
  };
  if (spec.kind == OperationKind::kAllGather) {
    for (size_t rank = 0; rank < memory.gathered->size(); ++rank) {
      const bool is_own = static_cast<int>(rank) == own_rank;
      if (!is_own && is_damaged(rank, (*memory.gathered)[rank])) return rank;
    }
  }
  if (spec.kind == OperationKind::kBroadcast &&
      std::count(memory.receivers.begin(), memory.receivers.end(), own_rank) >
          0) {
    const absl::string_view bytes(
        reinterpret_cast<const char*>(memory.bytes.data()),
        memory.bytes.size());
    if (is_damaged(spec.source, bytes)) return static_cast<int>(spec.source);
  }
  return std::nullopt;
}

ReductionAlgorithm OperationMaker::Choose(uint64_t elements,
                                          uint64_t chunk_bytes) {
  if (chosen_.size() == kMaxPlans) chosen_.clear();
  const auto [chosen, is_new] = chosen_.try_emplace({elements, chunk_bytes});
  if (is_new) {
    chosen->second = ChooseReduction(ReductionOf(elements, chunk_bytes));
  }
  return chosen->second;
}

absl::Status OperationMaker::MakeRun(Operation& operation) {
  switch (operation.spec.kind) {
    case OperationKind::kAllReduce:
    case OperationKind::kReduceScatter:
      return RunSum(operation);
    case OperationKind::kAllGather:
      RunGather(operation);
      break;
    case OperationKind::kBroadcast:
      RunBroadcast(operation);
      break;
  }
  return absl::OkStatus();
}

absl::Status OperationMaker::RunSum(Operation& operation) {
  ASSIGN_OR_RETURN(std::shared_ptr<const CollectivePlan> plan,
                   PlanOf(operation.spec));
  operation.scratch = TakeScratch(plan->scratch_bytes);
  std::vector<std::byte*> buffers;
  for (const Contribution& each : operation.memory.contributions) {
    // A plan writes to sums and scratch alone.
    buffers.push_back(
        reinterpret_cast<std::byte*>(const_cast<float*>(each.values.data())));
  }
  buffers.push_back(reinterpret_cast<std::byte*>(operation.memory.sum.data()));
  buffers.push_back(operation.scratch.data());
  operation.run =
      std::make_unique<PlanRun>(std::move(plan), std::move(buffers));
  return absl::OkStatus();
}

void OperationMaker::RunGather(Operation& operation) {
  std::vector<std::string>& gathered = *operation.memory.gathered;
  gathered.resize(operation.sizes.size());
  std::vector<std::byte*> buffers;
  for (size_t rank = 0; rank < gathered.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) {
      gathered[rank] = std::move(operation.memory.own);
    } else {
      gathered[rank].resize(operation.sizes[rank]);
    }
    buffers.push_back(reinterpret_cast<std::byte*>(gathered[rank].data()));
  }
  operation.run = std::make_unique<PlanRun>(
      std::make_shared<const CollectivePlan>(
          AllGatherPlan(operation.sizes, rank_, operation.spec.chunk_bytes)),
      std::move(buffers));
}

void OperationMaker::RunBroadcast(Operation& operation) {
  const OperationSpec& spec = operation.spec;
  const size_t bytes = spec.size == OperationSpec::kUnknownSize ? 0 : spec.size;
  operation.run = std::make_unique<PlanRun>(
      std::make_shared<const CollectivePlan>(BroadcastPlan(
          static_cast<int>(spec.source), operation.memory.receivers, bytes,
          rank_, spec.chunk_bytes)),
      std::vector<std::byte*>{operation.memory.bytes.data()});
}

void OperationMaker::Recycle(Operation& operation) {
  if (operation.scratch.empty() || spare_.size() == kMaxSpare) return;
  spare_.push_back(std::move(operation.scratch));
}

std::vector<std::byte> OperationMaker::TakeScratch(size_t bytes) {
  if (bytes == 0) return {};
  const auto fits =
      std::find_if(spare_.begin(), spare_.end(),
                   [&](const auto& each) { return each.size() >= bytes; });
  if (fits == spare_.end()) {
    // What is too small now was made for smaller packs: the next takes it.
    if (spare_.size() == kMaxSpare) spare_.pop_back();
    return std::vector<std::byte>(bytes);
  }
  std::vector<std::byte> scratch = std::move(*fits);
  spare_.erase(fits);
  return scratch;
}

absl::StatusOr<std::shared_ptr<const CollectivePlan>> OperationMaker::PlanOf(
    const OperationSpec& spec) {
  if (plans_.size() == kMaxPlans) plans_.clear();
  std::shared_ptr<const CollectivePlan>& plan = plans_[spec.Encode()];
  if (plan == nullptr) {
    ASSIGN_OR_RETURN(CollectivePlan made, MakeSumPlan(spec));
    plan = std::make_shared<const CollectivePlan>(std::move(made));
  }
  return plan;
}

absl::StatusOr<CollectivePlan> OperationMaker::MakeSumPlan(
    const OperationSpec& spec) const {
  Reduction reduction = ReductionOf(spec.size, spec.chunk_bytes);
  if (spec.kind == OperationKind::kReduceScatter) {
    return ReduceScatterPlan(reduction, rank_);
  }
  if (spec.algorithm != ReductionAlgorithm::kPlanner) {
    return AllReducePlan(reduction, spec.algorithm, rank_);
  }
  reduction.machines.clear();
  CollectivePlan plan = planner_->AllReduce(reduction, rank_);
  RETURN_IF_ERROR(CheckPlan(plan, reduction, rank_))
      << "all-reduce " << planner_->name() << " of " << spec.size
      << " elements";
  return plan;
}

}  // namespace parasol
