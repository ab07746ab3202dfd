#ifndef PARASOL_CLUSTER_PLACEMENT_ROW_SHARD_H_
#define PARASOL_CLUSTER_PLACEMENT_ROW_SHARD_H_

#include <cstdint>

namespace parasol {

// Returns the shard, of `num_shards`, that holds row `id` of every sparse
// table. The places of rows in checkpoints depend on this function: it never
// changes.
//
// The function is the high bits of Evensen's mix "moremur", scaled to the
// number of shards. All bits of the id matter, so that ids in any pattern
// spread evenly. A shard must hash ids with another function: of this one it
// sees only a narrow range.
inline uint32_t ShardOfRow(uint64_t id, uint32_t num_shards) {
  uint64_t mixed = id;
  mixed = (mixed ^ (mixed >> 27)) * 0x3c79ac492ba7b653;
  mixed = (mixed ^ (mixed >> 33)) * 0x1c69b3f74ac4ae35;
  mixed ^= mixed >> 27;
  return static_cast<uint32_t>((mixed >> 32) * num_shards >> 32);
}

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PLACEMENT_ROW_SHARD_H_
