#ifndef PARASOL_CLUSTER_RPC_FOLLOW_MESSAGE_H_
#define PARASOL_CLUSTER_RPC_FOLLOW_MESSAGE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "cluster/rpc/payload.h"
#include "proto/parameter.pb.h"

namespace parasol {

// A record of a push on its way to a standby: the bytes that come before its
// tensors, and these where they are. Together they are the record of a journal
// (storage/FORMAT.md).
struct FollowRecord {
  std::string head;
  absl::InlinedVector<PayloadRef, 1> tensors;

  size_t bytes() const {
    size_t bytes = head.size();
    for (const PayloadRef& tensor : tensors) bytes += tensor.size;
    return bytes;
  }
};

// A message of a Follow stream that is to be sent: `request`, with `records`
// for its records.
struct FollowMessage {
  wire::FollowRequest request;
  std::vector<FollowRecord> records;
};

// Returns the message with copies of all its records, as it travels in a call.
wire::FollowRequest WholeRequest(const FollowMessage& message);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_RPC_FOLLOW_MESSAGE_H_
