#ifndef PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_
#define PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/backward_pass.h"
#include "ml/model/graph.h"
#include "ml/model/plan.h"

namespace parasol {

// Returns that no gradient is wanted.
PlannedGradients NoGradients(const Graph& graph);

// The backward pass of a function's calls for some gradients, on a device that
// shares the host's memory. Not thread-safe.
class PlannedBackward {
 public:
  // Memory that backward passes of one function share, as one runs at a time.
  struct Memory {
    Array<float> between_layers;
    // Gradients that layers write and nobody wants.
    Array<float> unwanted;
  };

  // `graph`, `device` and `memory` must outlive this object.
  PlannedBackward(const Graph& graph, PlannedGradients wanted, Device& device,
                  Memory& memory);

  const PlannedGradients& wanted() const { return wanted_; }

  // Makes room for a pass over `examples` examples, and copies the gradients by
  // outputs, one array each, to where the pass begins. `variables` are the
  // arrays of the gradients by variables, one each, or none.
  //   ResourceExhausted  out of memory.
  absl::Status Begin(int64_t examples,
                     absl::Span<const absl::Span<const float>> outputs,
                     absl::Span<const absl::Span<float>> variables);

  // Arguments of PassExecutor::RunBackward().
  BackwardPass& pass() { return pass_; }
  absl::Span<float* const> variable_gradients() const { return arrays_; }

  // Copies the gradients by inputs, behind the pass, to the arrays `inputs`
  // that are not empty.
  void ReadInputGradients(int64_t examples,
                          absl::Span<const absl::Span<float>> inputs) const;

 private:
  // A variable's offset in Memory::unwanted, if its gradient is not wanted.
  static constexpr int64_t kNull = -1;

  void PlaceUnwanted();

  const Graph& graph_;
  const PlannedGradients wanted_;
  Device& device_;
  Memory& memory_;
  const Plan plan_;
  BackwardPass pass_;
  // Three lists with an entry for each variable: whether the pass writes its
  // gradient; its offset in Memory::unwanted; its array in the present pass.
  std::vector<bool> is_reached_;
  std::vector<int64_t> offsets_;
  int64_t unwanted_elements_ = 0;  // size of Memory::unwanted
  std::vector<float*> arrays_;
};

// The backward passes of one function, by the gradients that are wanted. Not
// thread-safe.
class PlannedBackwards {
 public:
  // Training loops have one or two; the one used last is dropped last.
  static constexpr size_t kMaxPlans = 32;

  // Both must outlive this object.
  PlannedBackwards(const Graph& graph, Device& device)
      : graph_(graph), device_(device) {}

  // Returns the backward pass for `wanted`. Valid until the next call.
  PlannedBackward& For(const PlannedGradients& wanted);

 private:
  const Graph& graph_;
  Device& device_;
  PlannedBackward::Memory memory_;
  // The one used last comes first.
  std::vector<std::unique_ptr<PlannedBackward>> plans_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_
