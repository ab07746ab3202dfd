#include "ps/operation/operation.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cluster/rpc/protocol_limits.h"

namespace parasol {
namespace {

size_t PayloadsOf(const wire::Operation& operation) {
  switch (operation.kind_case()) {
    case wire::Operation::kPush:
      return operation.push().range_size();
    case wire::Operation::kRowPush:
      return operation.row_push().with_counts() ? 3 : 2;
    case wire::Operation::kRowPull:
      return 1;
    case wire::Operation::kPull:
    case wire::Operation::KIND_NOT_SET:
      break;
  }
  return 0;
}

}  // namespace

absl::StatusOr<ReceivedMessage> ReceivedMessage::Create(
    const wire::RequestHeader& header, std::vector<PayloadView> payloads) {
  const size_t operations = header.operation_size();
  if (operations > kMaxOperationsPerMessage) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", operations,
                                                   " operations: more than ",
                                                   kMaxOperationsPerMessage));
  }
  ReceivedMessage request(header);
  request.first_payload_.reserve(operations + 1);
  size_t first = 0;
  for (const wire::Operation& operation : header.operation()) {
    request.first_payload_.push_back(first);
    first += PayloadsOf(operation);
  }
  request.first_payload_.push_back(first);
  if (first != payloads.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", operations, " operations with ",
                     payloads.size(), " payloads, not ", first));
  }
  request.payloads_ = std::move(payloads);
  return request;
}

}  // namespace parasol
