#ifndef PARASOL_PARAMETERS_CLIENT_EXCHANGE_MESSAGE_H_
#define PARASOL_PARAMETERS_CLIENT_EXCHANGE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_payloads.h"
#include "grpcpp/support/byte_buffer.h"
#include "parameters/client/shard_operation.h"
#include "parameters/client/shard_outbox.h"
#include "proto/parameter.pb.h"

// Conversion of operations to ExchangeRequest messages, and of results to the
// memory that waits for them.
namespace parasol {

// The operations of one message, and the hold on the memory that it is sent
// from. Lives until the transport no longer reads that memory.
class OutgoingMessage {
 public:
  // None of the operations may be finished yet.
  explicit OutgoingMessage(ShardOutbox::Message operations);
  ~OutgoingMessage();
  OutgoingMessage(const OutgoingMessage&) = delete;
  OutgoingMessage& operator=(const OutgoingMessage&) = delete;

  const ShardOutbox::Message& operations() const { return operations_; }
  // Number of bytes of the operations' values, sent or asked for.
  size_t bytes() const;

 private:
  const ShardOutbox::Message operations_;
};

// The sender and the addressee of a message (wire::RequestHeader).
struct MessageAddress {
  uint64_t worker_incarnation = 0;
  uint64_t layout = 0;
  uint64_t ps_incarnation = 0;
  // ShardOutbox::acknowledged().
  uint64_t acknowledged = 0;
};

// Returns the encoded message, or several that stand for it (`more` of
// wire::RequestHeader), each of whose operations have `max_bytes` together, or
// are a single one. `message` has at least one operation; all are of one run.
// `shared`: the shared memory that large payloads go to, or null if the stream
// has none.
std::vector<grpc::ByteBuffer> EncodeMessage(
    const std::shared_ptr<const OutgoingMessage>& message,
    const MessageAddress& address, SharedPayloads* shared, size_t max_bytes);

// A reader of the bytes of a response's payloads in order, however the ps has
// cut them.
class PayloadReader {
 public:
  // `payloads` must outlive the reader.
  explicit PayloadReader(const std::vector<PayloadView>& payloads);

  size_t remaining() const { return remaining_; }

  // Copies the next `bytes` bytes to `out`, unless they were received there.
  // They must be there.
  void Read(size_t bytes, std::byte* out);
  void Skip(size_t bytes);

 private:
  template <typename Use>
  void Consume(size_t bytes, Use use);

  const std::vector<PayloadView>& payloads_;
  // The position of the next byte: payload, piece of it, bytes used of the
  // piece.
  size_t payload_ = 0;
  size_t piece_ = 0;
  size_t used_ = 0;
  size_t remaining_ = 0;
};

// Takes the result's bytes from `payloads`, and writes them to the memory that
// `operation` names. A null `operation` drops them.
//   Internal  the number of bytes is not what was asked for; nothing has been
//             copied.
absl::Status ReadResult(const wire::Result& result,
                        const EncodedOperation* operation,
                        PayloadReader& payloads);

}  // namespace parasol

#endif  // PARASOL_PARAMETERS_CLIENT_EXCHANGE_MESSAGE_H_
