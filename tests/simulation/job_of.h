#ifndef PARASOL_TESTS_SIMULATION_JOB_OF_H_
#define PARASOL_TESTS_SIMULATION_JOB_OF_H_

#include <cstdint>
#include <vector>

#include "coordinator/coordinator.h"
#include "tests/simulation/schedule.h"

namespace parasol::simulation {

// Number of examples in a batch of every simulated job.
inline constexpr int64_t kBatchSize = 10;

// Number of chunks of a shard in synchronous training.
inline constexpr int kChunksPerShard = 2;

// Returns the number of examples of a shape's training set, and of each of its
// shards, as workers count them.
int64_t ExamplesOf(const Shape& shape);
std::vector<int64_t> ShardExamplesOf(const Shape& shape);

// Returns what a chief knows before it has read any checkpoint.
Coordinator::Options OptionsOf(const Shape& shape, const JobChoice& job);

// Returns the fingerprint of a job's layout.
uint64_t LayoutOf(const JobChoice& job);

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_JOB_OF_H_
