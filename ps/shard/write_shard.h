#ifndef PARASOL_PS_SHARD_WRITE_SHARD_H_
#define PARASOL_PS_SHARD_WRITE_SHARD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/checkpoint.pb.h"
#include "ps/shard/shard_snapshot.h"

namespace parasol {

// Writes the snapshot of shard `shard` of `num_shards` as one durable file,
// which must not be there yet. Lets go of each array as soon as it is written.
//   InvalidArgument  there is such a file already; it is not touched.
//   any other        an error of ShardWriter.
absl::StatusOr<durable::CheckpointFile> WriteShard(ShardSnapshot snapshot,
                                                   uint32_t shard,
                                                   uint32_t num_shards,
                                                   const std::string& path);

}  // namespace parasol

#endif  // PARASOL_PS_SHARD_WRITE_SHARD_H_
