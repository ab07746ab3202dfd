#ifndef PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_
#define PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/message_memory.h"
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
    // Lives until the next Take().
    wire::ResponseHeader* header = nullptr;
    std::vector<PayloadRef> payloads = {};
  };

  void Add(uint64_t operation_id, absl::StatusOr<OperationResult> result);

  // Returns the next message, with at least one result. Requires that there is
  // one.
  Message Take();
  void Clear();

  size_t results() const { return waiting_.size() - first_; }
  uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  struct Waiting {
    wire::Result result;
    OperationResult::Payloads payloads;
  };
  // Results wait from first_ on; the memory is kept for later ones.
  std::vector<Waiting> waiting_;
  size_t first_ = 0;
  // Has the header that was taken last.
  std::unique_ptr<MessageMemory> memory_ = std::make_unique<MessageMemory>();
  uint64_t payload_bytes_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_PENDING_RESPONSES_H_
