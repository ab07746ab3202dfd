#ifndef PARASOL_TESTS_FAULTS_SIMULATED_SHARD_H_
#define PARASOL_TESTS_FAULTS_SIMULATED_SHARD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/parameter.pb.h"
#include "ps/shard/parameter_shard.h"
#include "ps/shard/shard_snapshot.h"
#include "ps/step/step_state.h"

namespace parasol {

// The part of a checkpoint that is one shard's.
struct SavedShard {
  int64_t updates = 0;
  // The values of the shard's variables, of one element each.
  std::vector<float> values = {};
  // The rows of its table, of one element each.
  std::vector<uint64_t> ids = {};
  std::vector<float> rows = {};
};

// Takes the contents of a snapshot whose variables and table have had the same
// number of updates. Its table is empty afterwards.
SavedShard SaveShard(ShardSnapshot& snapshot);

// Makes a real shard of synchronous training, with variables of one element and
// a table of rows of one. `memory_bytes` bounds gradients that wait for lower
// replicas' gradients.
std::unique_ptr<ParameterShard> MakeSimulatedShard(int shard,
                                                   const wire::SyncSpec& sync,
                                                   uint64_t memory_bytes,
                                                   const SavedShard& saved,
                                                   StepState::Origin origin);

}  // namespace parasol

#endif  // PARASOL_TESTS_FAULTS_SIMULATED_SHARD_H_
