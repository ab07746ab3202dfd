#ifndef PARASOL_CLUSTER_PLACEMENT_PLACEMENT_H_
#define PARASOL_CLUSTER_PLACEMENT_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ml/layer/variable_spec.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {

inline constexpr int64_t kMaxPartsOfVariable = 1 << 16;

// The parts of variables that each ps holds.
//
// Invariant: the parts of a variable cover it without overlap. Within a shard
// the parts are in the order of the variables, then of their elements, and
// their ids count from 0.
struct Placement {
  // The parts of each ps; a shard may be empty.
  std::vector<std::vector<wire::PartSpec>> shards;
  // Bytes of the fullest shard, divided by the mean over the shards; 1 is even.
  double skew = 1;
};

// Returns true if an optimizer trains the part's variable: the LoadRequest's,
// or the part's own.
bool IsTrained(const wire::PartSpec& part);

// Splits the variables as the strategy's partitioner says, and distributes the
// parts to `num_ps` shards.
//   BALANCED_BYTES  the largest part first, to the shard with the fewest bytes.
//   ROUND_ROBIN     in the order of the variables, as TensorFlow does.
// Parts of variables that are not trained have an optimizer of their own. The
// result depends on nothing but the arguments. `strategy` must have its
// defaults filled in (cluster/job).
//   InvalidArgument  no ps, a name twice, an invalid shape, or a variable of
//                    more than kMaxPartsOfVariable parts; the message names the
//                    variable.
absl::StatusOr<Placement> Place(const std::vector<VariableSpec>& variables,
                                const job::ParameterServerStrategy& strategy,
                                int num_ps);

// Gives the parts of a placement the optimizers of their own that the job's
// layers have. A part whose optimizer trains it has a factor of the rate, too:
// so it is told from one that is not trained.
void AssignOptimizers(const job::Job& job, Placement& placement);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PLACEMENT_PLACEMENT_H_
