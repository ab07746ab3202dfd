#ifndef PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_
#define PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/backward_pass.h"
#include "ml/model/function/model_function.h"
#include "ml/model/function/variable_copies.h"
#include "ml/model/graph.h"
#include "ml/model/pass_executor.h"
#include "ml/model/plan.h"
#include "ml/model/variable_layout.h"

namespace parasol {

// Returns that no gradient is wanted.
PlannedGradients NoGradients(const Graph& graph);

// The backward pass of a function's calls for some gradients. Not thread-safe.
class PlannedBackward {
 public:
  // Memory that backward passes of one function share, as one runs at a time.
  struct Memory {
    Array<float> between_layers;
    // Gradients that layers write and nobody wants, on a device that shares the
    // host's memory.
    Array<float> unwanted;
    // Gradients by outputs and by inputs on their way between the host and
    // another device, and the end of the pass there.
    Array<float> by_outputs;
    Array<float> by_inputs;
    std::unique_ptr<Device::Event> end;
  };

  // `variables`: null if the device shares the host's memory. All but `wanted`
  // must outlive this object.
  PlannedBackward(const Graph& graph, PlannedGradients wanted, Device& device,
                  VariableCopies* variables, Memory& memory);

  const PlannedGradients& wanted() const { return wanted_; }

  // Runs the pass of a call over `examples` examples, whose forward pass
  // `executor` has run, from the gradients by outputs, one array each: writes
  // the gradients by variables and inputs, and calls `written`. Rows' gradients
  // are on the host behind it.
  //   ResourceExhausted  out of memory.
  //   Unavailable        the device was lost.
  absl::Status Run(int64_t examples,
                   absl::Span<const absl::Span<const float>> outputs,
                   const ModelFunction::Gradients& gradients,
                   PassExecutor& executor);

 private:
  // A variable's offset in Memory::unwanted, if its gradient is not wanted.
  static constexpr int64_t kNull = -1;

  void PlaceUnwanted();
  // Makes room, and brings the gradients by outputs to where the pass begins.
  absl::Status Begin(int64_t examples,
                     absl::Span<const absl::Span<const float>> outputs,
                     absl::Span<const absl::Span<float>> variables);
  absl::Status BringOutputGradients(
      absl::Span<const absl::Span<const float>> outputs);
  float* ArrayOf(size_t variable,
                 absl::Span<const absl::Span<float>> variables) const;
  void CopyInputGradients(int64_t examples,
                          absl::Span<const absl::Span<float>> inputs) const;
  // Returns true if the pass computes the variable's gradient for the caller.
  bool IsComputed(size_t variable) const {
    return wanted_.variables[variable] && is_reached_[variable];
  }
  // Says of a layer's gradients that they are where they are wanted.
  void Tell(const VariableRange& range,
            const ModelFunction::Gradients& gradients) const;

  // Five functions for a device that does not share the host's memory.
  // ComputedOf() leaves out variables at the range's ends whose gradients are
  // not computed, Fetch() starts to copy the others' to the host, TakeFetched()
  // copies what has come to where it is wanted, and Finish() does so with all.
  VariableRange ComputedOf(VariableRange range) const;
  absl::Status Fetch(const VariableRange& range);
  void TakeFetched(const VariableRange& range,
                   absl::Span<const absl::Span<float>> variables);
  absl::Status FetchInputGradients(int64_t examples);
  absl::Status Finish(int64_t examples,
                      const ModelFunction::Gradients& gradients,
                      PassExecutor& executor);

  const Graph& graph_;
  const PlannedGradients wanted_;
  Device& device_;
  VariableCopies* const variables_;
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

  // `variables`: null if the device shares the host's memory. All must outlive
  // this object.
  PlannedBackwards(const Graph& graph, Device& device,
                   VariableCopies* variables)
      : graph_(graph), device_(device), variables_(variables) {}

  // Returns the backward pass for `wanted`. Valid until the next call.
  PlannedBackward& For(const PlannedGradients& wanted);

 private:
  const Graph& graph_;
  Device& device_;
  VariableCopies* const variables_;
  PlannedBackward::Memory memory_;
  // The one used last comes first.
  std::vector<std::unique_ptr<PlannedBackward>> plans_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_PLANNED_BACKWARD_H_
