#ifndef PARASOL_CHIEF_SAME_SHARDING_H_
#define PARASOL_CHIEF_SAME_SHARDING_H_

#include <cstddef>

#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns true if `job` over `num_ps` shards has the same parts and tables as
// the checkpoint's job had, and takes pushes in the same way. A ps that holds
// them goes on.
bool HasSameSharding(const durable::CheckpointManifest& checkpoint,
                     const job::Job& job, size_t num_ps);

}  // namespace parasol

#endif  // PARASOL_CHIEF_SAME_SHARDING_H_
