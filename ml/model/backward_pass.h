#ifndef PARASOL_ML_MODEL_BACKWARD_PASS_H_
#define PARASOL_ML_MODEL_BACKWARD_PASS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/model/memory/arena.h"
#include "ml/model/plan.h"
#include "ml/model/variable_layout.h"

namespace parasol {

// The backward pass of a plan, with the memory of the gradients between its
// operations. Gradients that are not needed at the same time share memory.
// Sized for the largest batch seen. Not thread-safe.
class BackwardPass {
 public:
  // All arguments but `written` must outlive this object. `memory` starts empty
  // and grows here; passes that do not run at the same time may share it.
  BackwardPass(const Plan& plan,
               std::vector<std::vector<VariableRange>> written, Device& device,
               Array<float>& memory)
      : plan_(plan),
        device_(device),
        memory_(memory),
        written_(std::move(written)) {}

  const Plan& plan() const { return plan_; }

  // Makes room for a pass over `examples` examples. Memory that has to grow
  // loses its contents.
  //   ResourceExhausted  the device is full.
  absl::Status Reserve(int64_t examples);

  // Address of one of the plan's buffers on the device, for the present pass.
  Elements gradient(size_t buffer) const {
    return {plan_.buffers[buffer].type,
            memory_.data() + layout_.offsets[buffer]};
  }

  // The variables that are complete behind each operation of the plan. On a
  // device that shares the host's memory a range is a step's variables;
  // otherwise it is a piece in which gradients are copied.
  const std::vector<std::vector<VariableRange>>& written() const {
    return written_;
  }
  // Sets them to `pieces`, which share no variable.
  void WriteInPieces(const std::vector<VariableRange>& pieces) {
    written_ = PiecesBehind(plan_, pieces);
  }

 private:
  const Plan& plan_;
  Device& device_;
  Array<float>& memory_;
  std::vector<std::vector<VariableRange>> written_;
  int64_t capacity_ = 0;  // examples
  ArenaLayout layout_;    // offsets of buffers in memory_, in floats
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_BACKWARD_PASS_H_
