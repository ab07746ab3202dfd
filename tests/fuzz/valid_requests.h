#ifndef PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_
#define PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/rpc/chunk.h"
#include "proto/parameter.pb.h"

// What the ps of the fuzz target hold, and messages for them.
namespace parasol {

inline constexpr char kAsynchronousRun[] = "run";
inline constexpr char kSynchronousRun[] = "sync";
inline constexpr int kReplicasToAggregate = 2;
inline constexpr int kTotalReplicas = 3;

// Of dense variables.
inline constexpr uint32_t kLargePart = 0;
inline constexpr uint32_t kSmallPart = 1;
inline constexpr int64_t kLargeElements = kChunkElements + 3;
inline constexpr int64_t kSmallElements = 5;

// What a worker puts into shared memory before each message: a chunk, which
// fills a block.
inline constexpr uint64_t kSharedBytes = kChunkElements * sizeof(float);

// Of sparse table 0, the one that messages are for.
inline constexpr size_t kTableWidth = 3;

void AddRange(google::protobuf::RepeatedPtrField<wire::TensorRange>* ranges,
              uint32_t part, uint64_t first, uint64_t count);

// Messages that the ps answer with OK, in this order, once all of them have
// come: what mutants are made of.
std::vector<wire::ExchangeRequest> ValidExchangeRequests();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_
