#ifndef PARASOL_CLUSTER_PLACEMENT_PARTITIONER_H_
#define PARASOL_CLUSTER_PLACEMENT_PARTITIONER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace parasol {

// Returns the number of parts into which the strategy splits a float32 variable
// of `shape` along axis 0: at least 1, at most the length of axis 0; 1 for a
// scalar. All axes are at least 1 and the variable has less than 2^60 elements.
// A configured size below 1 byte counts as 1.
//   fixed_shards  min(shards, axis 0)
//   min_size      ceil(bytes / min_shard_bytes), at most max_shards, or at most
//                 `num_ps` if max_shards is 0
//   max_size      as few as keep a part's rows within max_shard_bytes (one row
//                 may be larger), at most max_shards unless that is 0
//   not set       1
int64_t NumParts(const job::ParameterServerStrategy& strategy,
                 absl::Span<const int64_t> shape, int num_ps);

// Returns the number of rows of each of `parts` parts of `rows` rows, in order:
// as equal as possible, with one row more in each of the first rows % parts
// parts ("div"). 1 <= parts <= rows.
std::vector<int64_t> SplitRows(int64_t rows, int64_t parts);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PLACEMENT_PARTITIONER_H_
