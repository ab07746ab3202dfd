#ifndef PARASOL_PS_SHARD_LOAD_SHARD_H_
#define PARASOL_PS_SHARD_LOAD_SHARD_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/parameter.pb.h"
#include "ps/shard/parameter_shard.h"
#include "ps/step/non_finite.h"

namespace parasol {

struct LoadLimits {
  // Limit on the bytes of all values and slots together, rows of sparse tables
  // included, and of the gradients of a synchronous step.
  uint64_t memory_bytes = UINT64_MAX;
  NonFinite non_finite = NonFinite::kReject;
};

// Returns the table that the chief orders. With `request.checkpoint()`: its
// values, slots and update counts, and its dedup windows if the same sharding
// wrote it. Without a checkpoint: initial values.
//   InvalidArgument    the optimizer, a part or the numbers of replicas are not
//                      acceptable, or the checkpoint is of another run, model
//                      or optimizer.
//   NotFound, DataLoss the checkpoint can't be read; the message names it.
//   ResourceExhausted  values and slots are more than `limits.memory_bytes`.
absl::StatusOr<std::unique_ptr<ParameterShard>> LoadShard(
    const wire::LoadRequest& request, const LoadLimits& limits);

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_LOAD_SHARD_H_
