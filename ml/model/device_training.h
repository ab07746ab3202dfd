#ifndef PARASOL_ML_MODEL_DEVICE_TRAINING_H_
#define PARASOL_ML_MODEL_DEVICE_TRAINING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/model/model.h"

namespace parasol {

// The passes of a model whose variables stay in its device's memory, where the
// caller writes and updates them: neither values nor gradients are copied from
// or to the host. HostValue(), Upload() and Gradients() of the model must not
// be called. Not thread-safe.
class DeviceTraining {
 public:
  // Addresses of one variable's arrays in the device's memory.
  struct Variable {
    float* value = nullptr;
    float* gradient = nullptr;
  };

  // The callbacks of a pass.
  struct Sinks {
    // Called once, when all work that reads values and writes gradients is on
    // the compute stream; enqueues the variables' updates there.
    absl::FunctionRef<absl::Status()> update;
    // The same as GradientSinks::rows.
    absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                           absl::Span<const float> gradients)>
        rows;
  };

  virtual ~DeviceTraining() = default;

  // Returns the arrays of the model's variables, which stay where they are.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::vector<Variable>> Variables() = 0;

  // Runs the pass of Model::Gradients(), and returns when the losses and the
  // gradients of rows are there. The device may go on; it has done with
  // `staged` when the next call returns. Errors are those of Gradients() and of
  // `sinks.update`.
  virtual absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                            Sinks sinks) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DEVICE_TRAINING_H_
