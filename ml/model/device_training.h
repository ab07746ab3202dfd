#ifndef PARASOL_ML_MODEL_DEVICE_TRAINING_H_
#define PARASOL_ML_MODEL_DEVICE_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/kernel/pass_argument.h"
#include "ml/model/device_rows.h"
#include "ml/model/model.h"
#include "ml/model/variable_layout.h"

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

  // The rows that a pass has read of a table that is on the device.
  struct Rows {
    size_t table = 0;
    // Address in the device's memory; the gradients are there.
    const TableRows* rows = nullptr;
    int64_t elements = 0;  // the same as rows->elements
  };

  // A part of AllGradients() that a pass has written before its end.
  struct Piece {
    size_t first = 0;
    size_t elements = 0;
    // Marks the point of the compute stream behind all that writes it.
    Device::Event* written = nullptr;
  };

  // The callbacks of a pass.
  struct Sinks {
    // Called once, when all work that reads values and writes gradients has
    // been enqueued, on the compute stream or behind the pieces' events;
    // enqueues the updates of the variables and of the tables that are on the
    // device there.
    absl::FunctionRef<absl::Status(absl::Span<const Rows> rows)> update;
    // Takes gradients as GradientSinks::rows does, of the tables on the host.
    absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                           absl::Span<const float> gradients)>
        rows;
  };

  virtual ~DeviceTraining() = default;

  // Returns the arrays of the model's variables, which stay where they are.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::vector<Variable>> Variables() = 0;

  // Returns the array in the device's memory that has the gradients of all
  // variables, and gaps between some, which hold no gradient. Requires that
  // Variables() has been called.
  virtual absl::Span<float> AllGradients() = 0;

  // Has each pass from now on mark where it has written the gradients of each
  // of `pieces`, which share no variable. Called once, before the first pass.
  // The events live as long as the model. What follows them need not be on the
  // compute stream, which the caller orders behind it before the next pass; a
  // piece itself may have been written on the copy-out stream.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::vector<Piece>> WriteInPieces(
      const std::vector<VariableRange>& pieces) = 0;

  // Has the rows of the tables that `tables` has on the device read there, from
  // the next Stage() on: StagedBatch::rows() is without them. A batch is then
  // staged only when the pass of the one before has returned, since a table may
  // leave the device when rows are looked up. Borrows `tables`.
  virtual void UseTables(DeviceRows& tables) = 0;

  // Runs the pass of Model::Gradients(), and returns when the losses and the
  // gradients of rows on the host are there. The device may go on; it has done
  // with `staged` when the next call returns. Fails as Gradients() and
  // `sinks.update` do.
  virtual absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                            Sinks sinks) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DEVICE_TRAINING_H_
