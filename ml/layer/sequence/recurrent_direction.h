#ifndef PARASOL_ML_LAYER_SEQUENCE_RECURRENT_DIRECTION_H_
#define PARASOL_ML_LAYER_SEQUENCE_RECURRENT_DIRECTION_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/kernel/sequence/recurrent_cell.h"

namespace parasol {

enum class RecurrentCell { kLstm, kGru };

// Sizes of a recurrent layer, and what its cell is.
struct RecurrentShape {
  RecurrentCell cell = RecurrentCell::kLstm;
  int64_t examples = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  int64_t units = 0;
  bool has_bias = true;

  // Numbers of a step's inputs of the cell.
  int64_t gates() const {
    return (cell == RecurrentCell::kLstm ? 4 : 3) * units;
  }
};

// One direction of a recurrent layer on one device, with the memory for its
// states. Not thread-safe.
class RecurrentDirection {
 public:
  // Arrays of a pass: x [examples, steps, channels], mask [examples, steps] or
  // null, and the direction's own variables (kernel, recurrent kernel, bias).
  struct Arrays {
    const float* x = nullptr;
    const float* mask = nullptr;
    absl::Span<const float* const> variables = {};
  };
  // A gradient by the output of a step: rows of `units`, `stride` apart; null
  // for none.
  struct StepGradient {
    const float* data = nullptr;
    int64_t stride = 0;
  };

  // `backwards`: step 0 is the last one of x.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<RecurrentDirection> Create(Device& device,
                                                   const RecurrentShape& shape,
                                                   bool backwards);

  absl::Status Forward(const Arrays& arrays);
  // Returns the output of the direction's step `step` [examples, units], until
  // the next Forward().
  const float* Output(int64_t step) const { return State(h_, step + 1); }

  // Writes the variables' gradients. Calls `dy` for each step, the last one
  // first.
  absl::Status VariableGradients(
      const Arrays& arrays, absl::FunctionRef<StepGradient(int64_t step)> dy,
      absl::Span<float* const> gradients);
  // Writes dx, after VariableGradients().
  absl::Status InputGradient(const Arrays& arrays, float* dx);

 private:
  RecurrentDirection(Device& device, const RecurrentShape& shape,
                     bool backwards)
      : device_(&device), shape_(shape), backwards_(backwards) {}

  float* State(const Array<float>& states, int64_t step) const {
    return states.data() + step * shape_.examples * shape_.units;
  }
  // Returns the arrays of a step that forward and backward pass have in common.
  CellStep StepOf(const Arrays& arrays, int64_t step) const;
  absl::Status BackwardStep(const Arrays& arrays, int64_t step,
                            StepGradient dy);
  const float* Bias(const Arrays& arrays, int64_t row) const;

  Device* device_;
  RecurrentShape shape_;
  bool backwards_;
  // x's product with the kernel, and then its gradient [examples, steps,
  // gates].
  Array<float> inputs_;
  // A step's product with the recurrent kernel, and each step's gradient
  // [steps, examples, gates].
  Array<float> recurrent_;
  Array<float> gates_;  // [steps, examples, 4 · units]
  // States before each step, and behind the last [steps + 1, examples, units];
  // the first are 0.
  Array<float> h_;
  Array<float> c_;
  // Gradients [examples, units] on their way from step to step.
  Array<float> through_product_;
  Array<float> around_product_;
  Array<float> dc_;
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_RECURRENT_DIRECTION_H_
