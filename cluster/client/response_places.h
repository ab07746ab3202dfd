#ifndef PARASOL_CLUSTER_CLIENT_RESPONSE_PLACES_H_
#define PARASOL_CLUSTER_CLIENT_RESPONSE_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cluster/client/shard_operation.h"
#include "cluster/payload_lane/frame_reader.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"

namespace parasol {

// Reads the header of an encoded wire::ExchangeResponse of which `start` is
// there. Returns nullopt if it is not all there. `end`, if the bytes are no
// response with the header first, is 0; otherwise the offset of what follows
// the header.
struct ResponseStart {
  wire::ResponseHeader header;
  size_t end = 0;
};
std::optional<ResponseStart> ReadResponseStart(absl::string_view start);

// Returns the places in the callers' memory of the values that a response of
// `frame_bytes` bytes brings: those of pulls in float32 that travel in one run.
// No places if the header does not say where the payloads are. The memory of
// each call that has a place is held (Completion::HoldMemory()) until
// FramePlaces::hold is released.
//
// `find` returns the operation in flight under an id, or null; none that it
// returns may be finished before PlaceResponse() returns.
FramePlaces PlaceResponse(
    const ResponseStart& start, size_t frame_bytes,
    absl::FunctionRef<std::shared_ptr<const EncodedOperation>(uint64_t id)>
        find);

// Checks that the payloads which came have the sizes that the header says, if
// it says any. Otherwise places may have been given to other bytes than theirs.
//   InvalidArgument  they have not: none of the values may be used.
absl::Status CheckPayloadSizes(const wire::ResponseHeader& header,
                               absl::Span<const PayloadView> payloads);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_RESPONSE_PLACES_H_
