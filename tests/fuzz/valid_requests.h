#ifndef PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_
#define PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/rpc/protocol_limits.h"
#include "proto/parameter.pb.h"

// The contents of the fuzz target's ps, and valid messages for them.
namespace parasol {

inline constexpr char kAsynchronousRun[] = "run";
inline constexpr char kSynchronousRun[] = "sync";
inline constexpr int kReplicasToAggregate = 2;
inline constexpr int kTotalReplicas = 3;

// Parts of dense variables: their ids and numbers of elements.
inline constexpr uint32_t kLargePart = 0;
inline constexpr uint32_t kSmallPart = 1;
inline constexpr int64_t kLargeElements = kChunkElements + 3;
inline constexpr int64_t kSmallElements = 5;

// Bytes that a worker puts into shared memory before each message: a chunk,
// which fills a block.
inline constexpr uint64_t kSharedBytes = kChunkElements * sizeof(float);

// Width of sparse table 0, the table that the messages are for.
inline constexpr size_t kTableWidth = 3;

void AddRange(google::protobuf::RepeatedPtrField<wire::TensorRange>* ranges,
              uint32_t part, uint64_t first, uint64_t count);

// Returns messages that the ps answer with OK, once all of them have come in
// this order. Mutants are made of them.
std::vector<wire::ExchangeRequest> ValidExchangeRequests();

}  // namespace parasol

#endif  // PARASOL_TESTS_FUZZ_VALID_REQUESTS_H_
