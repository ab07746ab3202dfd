#ifndef PARASOL_ML_TAPE_CUSTOM_OPERATION_H_
#define PARASOL_ML_TAPE_CUSTOM_OPERATION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/tape/tensor.h"

namespace parasol {

// Operands of the gradient of a custom operation.
struct CustomGradientCall {
  // The gradients of the targets by the outputs, one for each output, of its
  // shape; zeros for an output that no target depends on.
  absl::Span<const Tensor> d_outputs;
  // True for each input by which the gradient is asked for. What is given for
  // others is not looked at.
  absl::Span<const bool> wanted;
  // May be called with the gradient by an input that is wanted, on the tape's
  // thread, as soon as it is complete and others' are not: whoever waits for it
  // has it then. The gradient is returned all the same.
  absl::FunctionRef<void(size_t input, const Tensor& gradient)> written =
      IgnoreInput;

 private:
  static void IgnoreInput(size_t /*input*/, const Tensor& /*gradient*/) {}
};

// An operation that is computed elsewhere, such as a whole model, of which a
// tape knows the gradient only.
struct CustomOperation {
  // Name for errors: "model \"generator\"".
  std::string name;
  // Returns one tensor for each input, of its shape. Called on the thread of
  // the tape, once for each time that a tape gives gradients through the
  // operation.
  std::function<absl::StatusOr<std::vector<Tensor>>(
      const CustomGradientCall& call)>
      gradient;
  // True if `gradient` computes with operations on tensors alone, among them
  // the operation's own inputs and outputs: the gradient then has a gradient.
  // Otherwise asking for one is an error.
  bool is_twice_differentiable = false;
};

// Tells the tapes of this thread that `outputs` were computed from `inputs`.
// `outputs` must be tensors that were just made, as by Tensor::Alias(), and
// that no tape knows. Does nothing if no tape knows an input.
void RecordCustom(absl::Span<const Tensor> inputs,
                  absl::Span<const Tensor> outputs,
                  std::shared_ptr<const CustomOperation> operation);

// Returns true if a tape of this thread would record an operation on `inputs`:
// if not, what its gradient needs need not be kept.
bool IsRecorded(absl::Span<const Tensor> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_CUSTOM_OPERATION_H_
