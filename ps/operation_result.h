#ifndef PARASOL_PS_OPERATION_RESULT_H_
#define PARASOL_PS_OPERATION_RESULT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"

namespace parasol {

// What an operation that has been carried out is answered with; the fields are
// those of wire::Result.
struct OperationResult {
  bool duplicate = false;
  bool stale = false;
  int64_t min_updates = 0;
  int64_t max_updates = 0;
  // What was pulled.
  std::vector<PayloadRef> payloads = {};
  // Set where a pull has waited, maybe with many others: gives its result, for
  // which this one stands. To be called once, when there is room for it.
  std::function<absl::StatusOr<OperationResult>()> read = nullptr;
};

// Called once per operation: before the call that was given it returns, or
// later, on any thread that holds no lock. Everything that it needs it keeps
// alive; whoever drops it unanswered leaves a worker waiting.
using OperationDone = std::function<void(absl::StatusOr<OperationResult>)>;

}  // namespace parasol

#endif  // PARASOL_PS_OPERATION_RESULT_H_
