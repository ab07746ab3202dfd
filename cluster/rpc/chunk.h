#ifndef PARASOL_CLUSTER_RPC_CHUNK_H_
#define PARASOL_CLUSTER_RPC_CHUNK_H_

#include <cstddef>
#include <cstdint>

// What both ends of an Exchange stream must agree on.
namespace parasol {

// A part is stored, locked and updated in chunks of so many elements. The
// ranges of a message begin at chunks' ends and end there or at the part's.
inline constexpr size_t kChunkElements = 65536;

// A shard remembers which of a worker's newest sequences it has applied. A
// worker has no push in flight that is so many sequences ahead of its oldest
// unanswered one.
inline constexpr uint64_t kDedupWindow = 1024;

// Ranges of one message, and so its payloads.
inline constexpr size_t kMaxRangesPerMessage = 4096;

inline constexpr size_t kMaxOperationsPerMessage = 1024;

// A larger header is no request: parsed, it takes a multiple of its bytes.
inline constexpr size_t kMaxHeaderBytes = 1 << 20;

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_CHUNK_H_
