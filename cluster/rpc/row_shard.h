#ifndef PARASOL_CLUSTER_RPC_ROW_SHARD_H_
#define PARASOL_CLUSTER_RPC_ROW_SHARD_H_

#include <cstdint>

namespace parasol {

// The shard, of `num_shards`, that holds row `id` of every sparse table.
// Written into checkpoints by where rows are found: it never changes.
//
// The high bits of Stafford's thirteenth 64-bit mix, scaled to the number of
// shards. All bits of the id matter, so that ids in any pattern spread evenly.
inline uint32_t ShardOfRow(uint64_t id, uint32_t num_shards) {
  uint64_t mixed = id;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  mixed ^= mixed >> 31;
  return static_cast<uint32_t>((mixed >> 32) * num_shards >> 32);
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_ROW_SHARD_H_
