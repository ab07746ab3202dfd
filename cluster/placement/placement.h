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

// Which parts of which variables each ps holds.
//
// Invariant: the parts of a variable cover it without overlap. Within a shard
// they are in the order of the variables, then of their elements, and their
// ids count from 0.
struct Placement {
  // One per ps; a shard may be empty.
  std::vector<std::vector<wire::PartSpec>> shards;
  // Bytes of the fullest shard over those of the mean; 1 is even.
  double skew = 1;
};

// Splits the variables as the strategy's partitioner says and deals the parts
// out to `num_ps` shards.
//   BALANCED_BYTES  the largest part first, to the shard with the fewest bytes.
//   ROUND_ROBIN     in the order of the variables, as TensorFlow does.
// Parts of variables that are not trained have an optimizer of their own.
// Depends on nothing but its arguments. Defaults are filled in (cluster/job).
//   InvalidArgument  no ps, a name twice, a shape that is none, or a variable
//                    of more than kMaxPartsOfVariable parts: names it.
absl::StatusOr<Placement> Place(const std::vector<VariableSpec>& variables,
                                const job::ParameterServerStrategy& strategy,
                                int num_ps);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PLACEMENT_PLACEMENT_H_
