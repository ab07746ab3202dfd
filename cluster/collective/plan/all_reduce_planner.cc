#include "cluster/collective/plan/all_reduce_planner.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cluster/collective/plan/plan_rehearsal.h"
#include "cluster/collective/plan/whole_value.h"

namespace parasol {
namespace {

class OwnerSlices : public AllReducePlanner {
 public:
  std::string name() const override { return "RING"; }
  CollectivePlan AllReduce(const Reduction& reduction,
                           int rank) const override {
    return AllReducePlan(reduction, ReductionAlgorithm::kOwnerSlices, rank);
  }
};

// Returns what is wrong with a step's region, or an empty text.
std::string RegionFault(const Region& region, size_t contributions,
                        size_t bytes, size_t scratch_bytes) {
  if (region.buffer < 0 ||
      static_cast<size_t>(region.buffer) > contributions + 1) {
    return absl::StrCat("buffer ", region.buffer, " of ", contributions + 2);
  }
  const size_t size = static_cast<size_t>(region.buffer) > contributions
                          ? scratch_bytes
                          : bytes;
  if (region.first > size || region.bytes > size - region.first) {
    return absl::StrCat("bytes ", region.first, " to ",
                        region.first + region.bytes, " of buffer ",
                        region.buffer, ", which has ", size);
  }
  if (region.first % sizeof(float) != 0 || region.bytes % sizeof(float) != 0) {
    return absl::StrCat("bytes ", region.first, " to ",
                        region.first + region.bytes, " of buffer ",
                        region.buffer, ", which are no whole floats");
  }
  return "";
}

std::string StepFault(const CollectiveStep& step, const CollectivePlan& plan,
                      const Reduction& reduction, int rank) {
  const size_t contributions = reduction.layout[rank].size();
  const size_t bytes = reduction.count * sizeof(float);
  const auto fault_of = [&](const Region& region) {
    return RegionFault(region, contributions, bytes, plan.scratch_bytes);
  };
  if (std::string fault = fault_of(step.region); !fault.empty()) return fault;
  const bool writes = step.kind != CollectiveStep::Kind::kSend;
  if (writes && static_cast<size_t>(step.region.buffer) < contributions) {
    return absl::StrCat("a write to contribution ", step.region.buffer);
  }
  if (step.kind != CollectiveStep::Kind::kSum) {
    const int ranks = static_cast<int>(reduction.layout.size());
    if (step.peer >= 0 && step.peer < ranks && step.peer != rank) return "";
    return absl::StrCat("a message between rank ", rank, " and rank ",
                        step.peer, " of ", ranks);
  }
  for (const Region& addend : step.addends) {
    if (std::string fault = fault_of(addend); !fault.empty()) return fault;
    if (addend.bytes != step.region.bytes) {
      return absl::StrCat("an addend of ", addend.bytes, " bytes to a sum of ",
                          step.region.bytes);
    }
  }
  return "";
}

// The memory of all ranks in one rehearsal.
class Rehearsal {
 public:
  // `in_place`: the contribution of each rank whose memory the sums take, if
  // the rank has as many.
  Rehearsal(const Reduction& reduction, std::optional<size_t> in_place)
      : reduction_(reduction), in_place_(in_place) {}

  // Carries the plans out with contributions that `value` gives.
  template <typename Value>
  absl::Status Run(
      const std::vector<std::shared_ptr<const CollectivePlan>>& plans,
      uint64_t seed, Value value) {
    const size_t ranks = reduction_.layout.size();
    memory_.clear();
    memory_.resize(ranks);
    PlanRehearsal rehearsal(seed);
    for (size_t rank = 0; rank < ranks; ++rank) {
      Memory& memory = memory_[rank];
      for (const int replica : reduction_.layout[rank]) {
        std::vector<float>& values = memory.contributions.emplace_back();
        for (size_t i = 0; i < reduction_.count; ++i) {
          values.push_back(value(replica, i));
        }
      }
      memory.sums.assign(reduction_.count, kUnset);
      memory.scratch.assign(plans[rank]->scratch_bytes / sizeof(float) + 1,
                            kUnset);
      rehearsal.AddRank(plans[rank], memory.Buffers(in_place_));
    }
    return rehearsal.CarryOut();
  }

  // Returns the sums of a rank.
  const std::vector<float>& SumsOf(size_t rank) const {
    const Memory& memory = memory_[rank];
    return in_place_.has_value() && *in_place_ < memory.contributions.size()
               ? memory.contributions[*in_place_]
               : memory.sums;
  }

 private:
  static constexpr float kUnset = -12345.5f;

  struct Memory {
    std::vector<std::vector<float>> contributions;
    std::vector<float> sums;
    std::vector<float> scratch;

    std::vector<std::byte*> Buffers(std::optional<size_t> in_place) {
      std::vector<std::byte*> buffers;
      const auto add = [&](std::vector<float>& values) {
        buffers.push_back(reinterpret_cast<std::byte*>(values.data()));
      };
      for (std::vector<float>& each : contributions) add(each);
      const bool has_place =
          in_place.has_value() && *in_place < contributions.size();
      add(has_place ? contributions[*in_place] : sums);
      add(scratch);
      return buffers;
    }
  };

  const Reduction& reduction_;
  const std::optional<size_t> in_place_;
  std::vector<Memory> memory_;
};

// Numbers whose sums differ from order to order.
float RoundedValue(int replica, size_t element) {
  std::mt19937 random(static_cast<uint32_t>(replica * 7919 + element));
  return static_cast<float>(static_cast<double>(random()) / 65536.0 - 30000.0);
}

absl::Status CheckWholeSums(const Rehearsal& done, const Reduction& reduction) {
  for (size_t i = 0; i < reduction.count; ++i) {
    double expected = 0;
    for (const std::vector<int>& replicas : reduction.layout) {
      for (const int replica : replicas) expected += WholeValue(replica, i);
    }
    for (size_t rank = 0; rank < reduction.layout.size(); ++rank) {
      const double sum = done.SumsOf(rank)[i];
      if (sum == expected) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "element ", i, " of rank ", rank, " is ", sum, ", must be ", expected,
          ": a contribution is missing or there twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSameBits(const Rehearsal& done, const Reduction& reduction) {
  const std::vector<float>& first = done.SumsOf(0);
  for (size_t rank = 1; rank < reduction.layout.size(); ++rank) {
    const std::vector<float>& sums = done.SumsOf(rank);
    for (size_t i = 0; i < reduction.count; ++i) {
      if (std::memcmp(&sums[i], &first[i], sizeof(float)) == 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " has other bits at rank ", rank,
                       " than at rank 0: add in the same order at all ranks"));
    }
  }
  return absl::OkStatus();
}

absl::Status Rehearse(const AllReducePlanner& planner,
                      const Reduction& reduction) {
  std::vector<std::shared_ptr<const CollectivePlan>> plans;
  size_t most = 0;
  for (size_t rank = 0; rank < reduction.layout.size(); ++rank) {
    const int number = static_cast<int>(rank);
    plans.push_back(std::make_shared<const CollectivePlan>(
        planner.AllReduce(reduction, number)));
    const absl::Status valid = CheckPlan(*plans.back(), reduction, number);
    if (!valid.ok()) return valid;
    most = std::max(most, reduction.layout[rank].size());
  }
  std::vector<std::optional<size_t>> places = {std::nullopt};
  if (most > 0) places.push_back(0);
  if (most > 1) places.push_back(most - 1);
  for (const std::optional<size_t> in_place : places) {
    Rehearsal rehearsal(reduction, in_place);
    for (const uint64_t seed : {1, 2}) {
      absl::Status status = rehearsal.Run(plans, seed, WholeValue);
      if (status.ok()) status = CheckWholeSums(rehearsal, reduction);
      if (status.ok()) status = rehearsal.Run(plans, seed, RoundedValue);
      if (status.ok()) status = CheckSameBits(rehearsal, reduction);
      if (status.ok()) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          status.message(), in_place.has_value()
                                ? ", if the sums take a contribution's place"
                                : ""));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::shared_ptr<const AllReducePlanner> OwnerSlicesPlanner() {
  static const auto* const planner =
      new std::shared_ptr<const AllReducePlanner>(
          std::make_shared<OwnerSlices>());
  return *planner;
}

absl::Status CheckPlan(const CollectivePlan& plan, const Reduction& reduction,
                       int rank) {
  for (size_t i = 0; i < plan.steps().size(); ++i) {
    const std::string fault = StepFault(plan.steps()[i], plan, reduction, rank);
    if (fault.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("step ", i, " of rank ", rank, " has ", fault));
  }
  return absl::OkStatus();
}

absl::Status CheckPlanner(const AllReducePlanner& planner,
                          const ReplicaLayout& layout) {
  const size_t ranks = layout.size();
  if (ranks > kMaxRehearsedRanks) return absl::OkStatus();
  for (const size_t count : {size_t{0}, size_t{1}, 2 * ranks + 3, 8 * ranks}) {
    const Reduction reduction = {
        .layout = layout, .count = count, .chunk_bytes = 64};
    const absl::Status status = Rehearse(planner, reduction);
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("all-reduce ", planner.name(), ": with ", ranks,
                     " ranks and ", count, " elements: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace parasol
