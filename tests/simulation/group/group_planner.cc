#include "tests/simulation/group/group_planner.h"

#include <utility>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "cluster/collective/custom/custom_all_reduce.h"
#include "proto/job.pb.h"
#include "tests/simulation/group/star_planner.h"

namespace parasol::simulation {

std::shared_ptr<const AllReducePlanner> PlannerOf(const Shape& shape) {
  job::MultiWorkerMirrored strategy;
  switch (shape.all_reduce) {
    case Shape::AllReduce::kAuto:
    case Shape::AllReduce::kChain:
    case Shape::AllReduce::kMachines:
      break;
    case Shape::AllReduce::kRing:
      strategy.set_communication(job::MultiWorkerMirrored::RING);
      break;
    case Shape::AllReduce::kStar:
      return std::make_shared<StarPlanner>();
    case Shape::AllReduce::kTree:
      strategy.mutable_custom()->set_type("tree");
      break;
  }
  absl::StatusOr<std::shared_ptr<const AllReducePlanner>> planner =
      MakeAllReducePlanner(strategy);
  CHECK(planner.ok()) << planner.status().message();
  return *std::move(planner);
}

std::optional<ReductionAlgorithm> AlgorithmOf(const Shape& shape) {
  switch (shape.all_reduce) {
    case Shape::AllReduce::kChain:
      return ReductionAlgorithm::kChain;
    case Shape::AllReduce::kMachines:
      return ReductionAlgorithm::kMachines;
    default:
      return std::nullopt;
  }
}

}  // namespace parasol::simulation
