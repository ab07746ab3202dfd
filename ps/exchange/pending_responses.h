#ifndef PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_
#define PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"

namespace parasol {

// The results of a stream that wait to be sent, in the order in which their
// operations were done. Many small results make one message. Not thread-safe.
class PendingResponses {
 public:
  // A message takes results up to this size, so that the first results of a
  // long queue are on their way while the others are prepared.
  static constexpr size_t kResponseBytes = 1 << 20;
  static constexpr size_t kResponseResults = 1024;

  struct Message {
    wire::ResponseHeader header;
    std::vector<PayloadRef> payloads;
  };

  void Add(uint64_t operation_id, absl::StatusOr<OperationResult> result);

  // Returns the next message, with at least one result. Requires that there is
  // one.
  Message Take();
  void Clear();

  size_t results() const { return waiting_.size(); }
  uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  struct Waiting {
    wire::Result result;
    std::vector<PayloadRef> payloads;
  };
  std::deque<Waiting> waiting_;
  uint64_t payload_bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_
