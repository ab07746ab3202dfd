#ifndef PARASOL_PS_SHARD_LOAD_TABLE_H_
#define PARASOL_PS_SHARD_LOAD_TABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_table.h"
#include "ps/step/non_finite.h"

namespace parasol {

struct LoadLimits {
  // Of values and slots, and all rows of sparse tables.
  uint64_t memory_bytes = UINT64_MAX;
  NonFinite non_finite = NonFinite::kReject;
};

// The table that the chief orders: with the values, slots and update counts of
// `request.checkpoint()`, and its dedup windows when the same sharding wrote
// it; without a checkpoint, with initial values.
//   InvalidArgument    the optimizer, a part or the numbers of replicas are not
//                      acceptable, or the
//                      checkpoint is of another run, model or optimizer.
//   NotFound, DataLoss the checkpoint can't be read: names it.
//   ResourceExhausted  values and slots are more than `limits.memory_bytes`.
absl::StatusOr<std::unique_ptr<ParameterTable>> LoadTable(
    const wire::LoadRequest& request, const LoadLimits& limits);

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_LOAD_TABLE_H_
