#ifndef PARASOL_COORDINATOR_LAYOUT_H_
#define PARASOL_COORDINATOR_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/shards/shard_board.h"
#include "proto/job.pb.h"
#include "proto/parameter.pb.h"

namespace parasol {

// Returns the layout of a job over these shards: a number that differs, but for
// a chance of 1 in 2^64, when the parts and tables, their slots, their shards
// or the way in which pushes are taken differ. It is the same in every process
// and never 0. Initializers and the optimizers' hyperparameters have no part in
// it: a shard takes others in place.
//   InvalidArgument  an optimizer is not acceptable.
absl::StatusOr<uint64_t> LayoutOf(const job::Job& job,
                                  const std::vector<ShardBoard::Shard>& shards);

// Returns how ps take pushes in synchronous training; nullopt in other modes.
std::optional<wire::SyncSpec> SyncSpecOf(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_LAYOUT_H_
