#include "cluster/rpc/follow_frame.h"

#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {

grpc::ByteBuffer EncodeFollow(const FollowMessage& message) {
  wire::FollowRequest header = message.request;
  std::vector<PayloadRef> payloads;
  for (const FollowRecord& record : message.records) {
    header.add_record(record.head);
    payloads.insert(payloads.end(), record.tensors.begin(),
                    record.tensors.end());
  }
  return EncodeFrame(header, payloads);
}

grpc::ByteBuffer EncodeFollowResponse(const wire::FollowResponse& response) {
  return EncodeFrame(response, {});
}

absl::StatusOr<ReceivedFollow> ReceivedFollow::Parse(
    const grpc::ByteBuffer& buffer) {
  wire::FollowRequest request;
  // A shard's settings and pieces of its state may be as large as a message.
  ASSIGN_OR_RETURN(ReceivedFrame frame,
                   ReceivedFrame::Parse(buffer, kMaxRangesPerMessage, &request,
                                        kMaxMessageBytes));
  return ReceivedFollow(std::move(request), std::move(frame));
}

absl::StatusOr<wire::FollowResponse> ParseFollowResponse(
    const grpc::ByteBuffer& buffer) {
  wire::FollowResponse response;
  RETURN_IF_ERROR(ReceivedFrame::Parse(buffer, 0, &response).status());
  return response;
}

}  // namespace parasol
