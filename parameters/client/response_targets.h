#ifndef PARASOL_PARAMETERS_CLIENT_RESPONSE_TARGETS_H_
#define PARASOL_PARAMETERS_CLIENT_RESPONSE_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/rpc/message_memory.h"
#include "cluster/rpc/payload.h"
#include "parameters/client/shard_operation.h"
#include "proto/parameter.pb.h"

namespace parasol {

// The header of an encoded wire::ExchangeResponse, and the offset of what
// follows it; 0 if the bytes are no response that begins with its header.
struct ResponseStart {
  const wire::ResponseHeader& header;
  size_t end = 0;
};

// Reads the header of a response whose first bytes are `start` into `memory`.
// Returns nullopt if it is not all there.
std::optional<ResponseStart> ReadResponseStart(absl::string_view start,
                                               MessageMemory& memory);

// The fewest bytes of values that have a target. To copy fewer costs less than
// to receive a piece of their own, so a shorter response has no targets.
inline constexpr size_t kMinTargetBytes = 8 << 10;

// Returns the places in the callers' memory to which a response of
// `frame_bytes` bytes brings values. Only values of pulls in float32 that
// travel in one run have such targets, and none do if the header does not say
// where the payloads are. The memory of each call that has a target is held
// (Completion::HoldMemory()) until FrameTargets::hold is released.
//
// `find` returns the operation in flight under an id, or null; none that it
// returns may be finished before FindResponseTargets() returns.
FrameTargets FindResponseTargets(
    const ResponseStart& start, size_t frame_bytes,
    absl::FunctionRef<std::shared_ptr<const EncodedOperation>(uint64_t id)>
        find);

// Checks that the payloads which came have the sizes that the header says, if
// it says any. Otherwise targets may have been given to other bytes than
// theirs.
//   InvalidArgument  they have not: none of the values may be used.
absl::Status CheckPayloadSizes(const wire::ResponseHeader& header,
                               absl::Span<const PayloadView> payloads);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_RESPONSE_TARGETS_H_
