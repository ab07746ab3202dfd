#ifndef PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_
#define PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

// Messages of the shape
//
//   message Frame { Header header = 1; repeated bytes payload = 2; }
//
// (ExchangeRequest, ExchangeResponse) to and from gRPC buffers. On the wire
// they are ordinary protobuf; here the header alone is serialised and the
// payloads are slices of the buffer, so no tensor byte is copied into or out of
// a protobuf message, and those of large tensors not at all.
namespace parasol {

// Small payloads are copied; the others are read when gRPC writes the buffer to
// its socket.
grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             const std::vector<PayloadRef>& payloads);

// A received frame. Keeps the received memory alive. Movable.
class ReceivedFrame {
 public:
  // Parses `buffer`, and its header into `header`. Fields that are not known
  // are skipped, as protobuf does; any order of fields is accepted. What is
  // accepted means the same as to protobuf; stricter in that groups, which
  // proto3 can't declare, are refused.
  //   InvalidArgument  not such a message, cut short, a header of more than
  //                    kMaxHeaderBytes, or more than `max_payloads` payloads.
  static absl::StatusOr<ReceivedFrame> Parse(
      const grpc::ByteBuffer& buffer, size_t max_payloads,
      google::protobuf::MessageLite* header);

  // Not copyable: the payloads point into the slices, which hold short ones
  // in themselves.
  ReceivedFrame(ReceivedFrame&&) = default;
  ReceivedFrame& operator=(ReceivedFrame&&) = default;

  const std::vector<PayloadView>& payloads() const { return payloads_; }
  // They still point into this frame.
  std::vector<PayloadView> TakePayloads() { return std::move(payloads_); }

 private:
  ReceivedFrame() = default;

  std::vector<grpc::Slice> slices_;
  std::vector<PayloadView> payloads_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_
