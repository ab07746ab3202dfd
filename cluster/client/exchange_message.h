#ifndef PARASOL_CLUSTER_CLIENT_EXCHANGE_MESSAGE_H_
#define PARASOL_CLUSTER_CLIENT_EXCHANGE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "cluster/client/shard_request.h"
#include "cluster/rpc/payload.h"
#include "cluster/rpc/shared_payloads.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/parameter.pb.h"

// Requests to ExchangeRequest messages, results to the memory that waits for
// them.
namespace parasol {

// The requests of one message, and the hold on the memory that it is sent from:
// lives until the transport no longer reads it.
class OutgoingMessage {
 public:
  // While none of them is finished.
  explicit OutgoingMessage(std::vector<std::shared_ptr<ShardRequest>> requests);
  ~OutgoingMessage();
  OutgoingMessage(const OutgoingMessage&) = delete;
  OutgoingMessage& operator=(const OutgoingMessage&) = delete;

  const std::vector<std::shared_ptr<ShardRequest>>& requests() const {
    return requests_;
  }

 private:
  const std::vector<std::shared_ptr<ShardRequest>> requests_;
};

// `message` has one request at least; all are of one run. `shared`: where large
// payloads go, if the stream has that; or null.
grpc::ByteBuffer EncodeMessage(
    const std::shared_ptr<const OutgoingMessage>& message,
    uint64_t worker_incarnation, SharedPayloads* shared);

// The bytes of a response's payloads in order, however the ps has cut them.
class PayloadReader {
 public:
  // `payloads` must outlive it.
  explicit PayloadReader(const std::vector<PayloadView>& payloads);

  size_t remaining() const { return remaining_; }

  // The next `bytes`, of which there must be as many.
  void Read(size_t bytes, std::byte* out);
  void Skip(size_t bytes);

 private:
  template <typename Use>
  void Consume(size_t bytes, Use use);

  const std::vector<PayloadView>& payloads_;
  // The next byte: of a payload's piece.
  size_t payload_ = 0;
  size_t piece_ = 0;
  size_t used_ = 0;
  size_t remaining_ = 0;
};

// Takes the result's bytes from `payloads`, and writes them to where `request`
// wants them. Null: nobody does.
//   Internal  not as many bytes as were asked for; nothing has been written.
absl::Status ReadResult(const wire::Result& result, const ShardRequest* request,
                        PayloadReader& payloads);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_EXCHANGE_MESSAGE_H_
