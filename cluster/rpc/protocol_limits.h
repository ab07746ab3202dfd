#ifndef PARASOL_CLUSTER_RPC_PROTOCOL_LIMITS_H_
#define PARASOL_CLUSTER_RPC_PROTOCOL_LIMITS_H_

#include <cstddef>
#include <cstdint>

// The numbers that both ends of an Exchange stream must agree on.
namespace parasol {

// Number of elements of a chunk, in which a part is stored, locked and updated.
// The ranges of a message begin at a chunk's begin and end at a chunk's or the
// part's end.
inline constexpr size_t kChunkElements = 65536;

// Number of a worker's newest sequences of which a shard remembers whether it
// has applied them. A worker has no push in flight that is this many or more
// sequences ahead of its oldest unanswered one.
inline constexpr uint64_t kDedupWindow = 1024;

// Maximum number of ranges of one message, and so of its payloads.
inline constexpr size_t kMaxRangesPerMessage = 4096;

inline constexpr size_t kMaxOperationsPerMessage = 1024;

// Maximum number of payloads of a response: a ps may answer a range in two.
inline constexpr size_t kMaxResponsePayloads = 2 * kMaxRangesPerMessage;

// Maximum bytes of one message; a larger one ends its stream. While messages
// come, what they take is bounded for all streams together (RpcServer's and
// PayloadHost's limits); a whole one is bounded by its stream's flow.
inline constexpr int kMaxMessageBytes = 256 << 20;

// Maximum bytes of the ids and gradients of one push of rows to one shard,
// which is one message.
inline constexpr size_t kMaxRowPushBytes = 240 << 20;

// Maximum bytes of one pull, counted as float32 whatever the encoding: the
// memory that a ps holds for one answer.
inline constexpr uint64_t kMaxPullBytes = 48 << 20;

// Maximum bytes of a header. A larger one is no request: parsed, it takes a
// multiple of its bytes.
inline constexpr size_t kMaxHeaderBytes = 1 << 20;

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_PROTOCOL_LIMITS_H_
