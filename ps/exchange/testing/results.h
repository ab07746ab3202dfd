#ifndef PARASOL_PS_EXCHANGE_TESTING_RESULTS_H_
#define PARASOL_PS_EXCHANGE_TESTING_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ps/exchange/pending_responses.h"
#include "ps/operation/operation.h"

// Results of operations for tests of streams.
namespace parasol {

// Returns the result of a pull of `bytes` bytes, which `owner` keeps.
inline OperationResult Pulled(size_t bytes,
                              std::shared_ptr<const void> owner = {}) {
  OperationResult result;
  result.payloads.push_back(
      {.data = nullptr, .size = bytes, .owner = std::move(owner)});
  return result;
}

// Returns the result of a pull that has waited, and is read now.
inline OperationResult Waited() {
  OperationResult result;
  result.read = [] { return OperationResult(); };
  return result;
}

// Returns the ids of the operations that `message` answers.
inline std::vector<uint64_t> Ids(
    const std::optional<PendingResponses::Message>& message) {
  std::vector<uint64_t> ids;
  if (!message.has_value()) return ids;
  for (const wire::Result& result : message->header->result()) {
    ids.push_back(result.id());
  }
  return ids;
}

}  // namespace parasol

#endif  // PARASOL_PS_EXCHANGE_TESTING_RESULTS_H_
