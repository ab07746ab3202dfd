#ifndef PARASOL_PS_LOAD_TABLE_H_
#define PARASOL_PS_LOAD_TABLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "proto/parameter.pb.h"
#include "ps/parameter_table.h"

namespace parasol {

// The table that the chief orders: with the values, slots and update counts of
// `request.checkpoint()`, and its dedup windows when the same sharding wrote
// it; without a checkpoint, with initial values.
//   InvalidArgument    the optimizer or a part is not acceptable, or the
//                      checkpoint is of another run, model or optimizer.
//   NotFound, DataLoss the checkpoint can't be read: names it.
//   ResourceExhausted  values and slots are more than `memory_limit_bytes`.
absl::StatusOr<std::unique_ptr<ParameterTable>> LoadTable(
    const wire::LoadRequest& request, uint64_t memory_limit_bytes);

}  // namespace parasol

#endif  // PARASOL_PS_LOAD_TABLE_H_
