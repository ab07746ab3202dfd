#ifndef PARASOL_ML_MODEL_FUNCTION_VARIABLE_COPIES_H_
#define PARASOL_ML_MODEL_FUNCTION_VARIABLE_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/graph.h"
#include "ml/model/variable_memory.h"

namespace parasol {

// The variables of a function in the memory of a device that does not share the
// host's: the values that calls lend, and gradients and changes on their way to
// the host. A value stays until another one comes for its variable, so one that
// several passes read is sent once. Not thread-safe. Errors of the device:
// ResourceExhausted, it is full; Unavailable, it was lost.
class VariableCopies {
 public:
  // Values of all variables, as a call lends them.
  struct Lent {
    std::vector<absl::Span<const float>> values;
    // Numbers of the values, not 0: equal numbers stand for equal values.
    std::vector<uint64_t> versions;
  };

  // Borrows `device`.
  static absl::StatusOr<std::unique_ptr<VariableCopies>> Create(
      const Graph& graph, Device& device);

  // Starts to copy the values that the device does not have, on the copy-in
  // stream, when no work reads the ones before. Errors of the device.
  absl::Status Send(const Lent& lent);
  // The kernels' inputs, one array per variable, which stay where they are.
  absl::Span<const float* const> values() const { return memory_.values(); }

  // The gradients by the variables, and their way to the host.
  VariableMemory& memory() { return memory_; }

  // Returns arrays that changes of the variables are written to which are
  // neither trained nor frozen; null for all others. Errors of the device.
  absl::StatusOr<absl::Span<float* const>> Changes();
  // Brings what was written there to the arrays `changes`, one per variable.
  // Blocks. Errors of the device.
  absl::Status FetchChanges(absl::Span<const absl::Span<float>> changes);

 private:
  VariableCopies(const Graph& graph, Device& device, VariableMemory memory);

  Device& device_;
  VariableMemory memory_;
  std::vector<uint64_t> sent_;  // one per variable; 0: no value was sent

  // All changes lie in one array, so that one copy takes them.
  // One per variable; kNone: the variable is trained or frozen.
  static constexpr int64_t kNone = -1;
  std::vector<int64_t> change_offsets_;
  int64_t change_elements_ = 0;
  Array<float> changes_on_device_;
  Array<float> changes_on_host_;
  std::vector<float*> changes_;
  std::unique_ptr<Device::Event> fetched_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_VARIABLE_COPIES_H_
