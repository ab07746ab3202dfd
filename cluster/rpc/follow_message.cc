#include "cluster/rpc/follow_message.h"

namespace parasol {

wire::FollowRequest WholeRequest(const FollowMessage& message) {
  wire::FollowRequest whole = message.request;
  for (const FollowRecord& record : message.records) {
    std::string& bytes = *whole.add_record();
    bytes.reserve(record.bytes());
    bytes = record.head;
    for (const PayloadRef& tensor : record.tensors) {
      bytes.append(static_cast<const char*>(tensor.data), tensor.size);
    }
  }
  return whole;
}

}  // namespace parasol
