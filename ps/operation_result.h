#ifndef PARASOL_PS_OPERATION_RESULT_H_
#define PARASOL_PS_OPERATION_RESULT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/rpc/payload.h"

namespace parasol {

// The result of an operation that has been carried out. The fields are those of
// wire::Result.
struct OperationResult {
  bool duplicate = false;
  bool stale = false;
  int64_t min_updates = 0;
  int64_t max_updates = 0;
  // The values that were pulled.
  std::vector<PayloadRef> payloads = {};
  // Set if a pull has waited, perhaps with many others: returns the pull's
  // actual result. Call it once, when there is room for the values.
  std::function<absl::StatusOr<OperationResult>()> read = nullptr;
};

// Called once per operation: before the call that it was given to returns, or
// later, on any thread that holds no lock. It keeps alive everything that it
// needs. An operation whose OperationDone is destroyed without a call leaves a
// worker waiting.
using OperationDone = std::function<void(absl::StatusOr<OperationResult>)>;

}  // namespace parasol

#endif  // PARASOL_PS_OPERATION_RESULT_H_
