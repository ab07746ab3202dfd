#ifndef PARASOL_CLUSTER_RPC_FOLLOW_FRAME_H_
#define PARASOL_CLUSTER_RPC_FOLLOW_FRAME_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cluster/rpc/follow_message.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/tensor_frame.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/parameter.pb.h"

// The messages of a Follow stream on a lane. Each is a tensor frame: its header
// is the message, whose records end before their tensors, and its payloads are
// all tensors of the records, in their order. So tensors are sent from where
// the primary has received them, and read from where the standby does.
namespace parasol {

// Returns the encoded message. Tensors are read when the buffer is sent.
grpc::ByteBuffer EncodeFollow(const FollowMessage& message);
grpc::ByteBuffer EncodeFollowResponse(const wire::FollowResponse& response);

// A received message of a primary. Keeps the received memory. Movable.
class ReceivedFollow {
 public:
  // Errors are ReceivedFrame::Parse()'s.
  static absl::StatusOr<ReceivedFollow> Parse(const grpc::ByteBuffer& buffer);

  // The message; records end before their tensors.
  const wire::FollowRequest& request() const { return request_; }
  // The tensors of all records.
  absl::Span<const PayloadView> tensors() const { return frame_.payloads(); }

 private:
  ReceivedFollow(wire::FollowRequest request, ReceivedFrame frame)
      : request_(std::move(request)), frame_(std::move(frame)) {}

  wire::FollowRequest request_;
  ReceivedFrame frame_;
};

// Returns the standby's answer. Errors are ReceivedFrame::Parse()'s.
absl::StatusOr<wire::FollowResponse> ParseFollowResponse(
    const grpc::ByteBuffer& buffer);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_FOLLOW_FRAME_H_
