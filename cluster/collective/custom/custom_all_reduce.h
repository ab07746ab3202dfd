#ifndef PARASOL_CLUSTER_COLLECTIVE_CUSTOM_CUSTOM_ALL_REDUCE_H_
#define PARASOL_CLUSTER_COLLECTIVE_CUSTOM_CUSTOM_ALL_REDUCE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/collective/plan/all_reduce_planner.h"
#include "proto/job.pb.h"

// All-reduces that users write (docs/examples/custom_model): a plan for each
// rank, which workers carry out as they do their own. Only the workers need
// the code.
namespace parasol {

// A function that makes a planner.
//   InvalidArgument  the parameters do not suit it: says why.
using CustomAllReduceFactory =
    std::function<absl::StatusOr<std::unique_ptr<const AllReducePlanner>>(
        const job::Custom& spec)>;

// Registers an all-reduce in this program as `type`, at namespace scope of its
// own file:
//
//   const CustomAllReduceRegistration kRegistration("pairs", MakePairs);
//
// Two of one type are a bug. Only for use before main().
class CustomAllReduceRegistration {
 public:
  CustomAllReduceRegistration(absl::string_view type,
                              CustomAllReduceFactory factory);
};

// Returns the planner that `strategy` asks for; null if the size chooses
// (communication AUTO).
//   FailedPrecondition  this program has no such all-reduce; names those that
//                       it has.
//   InvalidArgument     "<type>: …": the code refuses the parameters.
absl::StatusOr<std::shared_ptr<const AllReducePlanner>> MakeAllReducePlanner(
    const job::MultiWorkerMirrored& strategy);
// Returns such a planner for the replicas of one process; null:
// `cross_device_ops` says.
absl::StatusOr<std::shared_ptr<const AllReducePlanner>> MakeAllReducePlanner(
    const job::Mirrored& strategy);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_COLLECTIVE_CUSTOM_CUSTOM_ALL_REDUCE_H_
