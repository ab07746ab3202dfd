#ifndef PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_
#define PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/protocol_limits.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

// Conversion between gRPC buffers and messages of the shape
//
//   message Frame { Header header = 1; repeated bytes payload = 2; }
//
// (ExchangeRequest, ExchangeResponse). On the wire they are ordinary protobuf.
// Here the header alone is serialised and the payloads are slices of the
// buffer, so no tensor byte is copied into or out of a protobuf message, and
// large tensors are not copied at all.
//
// A header's bytes end with their crc32c (field 200000 of the header, which
// protobuf skips): a request whose header is damaged on its way is none, and
// not another request, whose refusal would end a worker. Bytes of tensors have
// no checksum but TCP's.
namespace parasol {

// Returns the encoded frame. Small payloads are copied; the others are read
// when gRPC writes the buffer to its socket.
grpc::ByteBuffer EncodeFrame(const google::protobuf::MessageLite& header,
                             const std::vector<PayloadRef>& payloads);

// The header of an encoded frame of which only the first bytes are there.
struct FrameStart {
  // True if the header goes on after these bytes.
  bool needs_more = false;
  // The header's bytes; nullopt if the frame does not begin with a header.
  std::optional<absl::string_view> header = std::nullopt;
};
FrameStart FindHeader(absl::string_view start);

// Returns the number of bytes that EncodeFrame() writes before a payload.
size_t PayloadPrefixBytes(size_t payload_bytes);

// A received frame. Keeps the received memory alive. Movable.
class ReceivedFrame : public PayloadMemory {
 public:
  // Parses `buffer`, and its header into `header`. Unknown fields are skipped,
  // as protobuf does; any order of fields is accepted. An accepted frame means
  // the same as to protobuf; but groups, which proto3 can't declare, are
  // refused.
  //   InvalidArgument  not such a message, cut short, a header of more than
  //                    `max_header_bytes`, or more than `max_payloads`
  //                    payloads.
  static absl::StatusOr<ReceivedFrame> Parse(
      const grpc::ByteBuffer& buffer, size_t max_payloads,
      google::protobuf::MessageLite* header,
      size_t max_header_bytes = kMaxHeaderBytes);

  // Movable, not copyable: the payloads point into the slices, which hold short
  // payloads in themselves.
  ReceivedFrame(ReceivedFrame&&) = default;
  ReceivedFrame& operator=(ReceivedFrame&&) = default;
  ~ReceivedFrame() override = default;

  std::shared_ptr<const void> Keep() override;
  size_t bytes() const override { return bytes_; }

  const std::vector<PayloadView>& payloads() const { return payloads_; }
  // Returns the payloads, which still point into this frame.
  std::vector<PayloadView> TakePayloads() { return std::move(payloads_); }

 private:
  ReceivedFrame() = default;

  using Slices = std::vector<grpc::Slice>;

  // The payloads point into the elements: a vector that is moved keeps these
  // where they are.
  Slices slices_;
  std::shared_ptr<const Slices> kept_;  // has them since Keep()
  size_t bytes_ = 0;
  std::vector<PayloadView> payloads_;
};

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_TENSOR_FRAME_H_
