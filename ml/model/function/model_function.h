#ifndef PARASOL_ML_MODEL_FUNCTION_MODEL_FUNCTION_H_
#define PARASOL_ML_MODEL_FUNCTION_MODEL_FUNCTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/layer.h"
#include "ml/model/graph.h"
#include "ml/model/input_views.h"

namespace parasol {

// The layers of a graph as a function: outputs of inputs and of the variables'
// values, and later, from the gradients by the outputs, the gradients by the
// variables, by the rows of tables and by the inputs.
//
// A function has no values of its own: each call is lent the variables' values,
// so several functions may share variables. It has no losses and adds no L2
// terms: the graph's (Graph::variable_l2, GraphTable::l2) are left to whoever
// computes a loss of the outputs. Several calls may be open at once.
// Their memory is used again by later calls, so a step like an earlier one
// allocates nothing. What is given and returned is in the host's memory,
// wherever the device computes; no work is left on it when a function returns.
// Not thread-safe: one thread at a time uses a function and its calls; threads
// have a function each, on a device each.
class ModelFunction {
 public:
  struct Mode {
    // Dropout drops, and batch normalization takes the moments of the batch.
    bool training = false;
    // Seed of all randomness of the call: the same seed draws the same.
    uint64_t seed = 0;
    // Numbers of the variables' values, one each, from 1 to 2^63 - 1: the same
    // number stands for the same value in all calls, so that a device with
    // memory of its own is not sent what it has. None: values are new.
    absl::Span<const uint64_t> versions = {};
  };

  // One call: its outputs, and what its gradients need, until it is destroyed.
  // Movable. Must not outlive its function.
  class Call {
   public:
    Call(Call&& other) noexcept
        : function_(std::exchange(other.function_, nullptr)),
          slot_(other.slot_) {}
    Call& operator=(Call&& other) noexcept {
      std::swap(function_, other.function_);
      std::swap(slot_, other.slot_);
      return *this;
    }
    ~Call() {
      if (function_ != nullptr) function_->Close(slot_);
    }

    int64_t examples() const { return function_->ExamplesOf(slot_); }
    // Returns output `index` of the graph, [examples, shape...].
    absl::Span<const float> output(size_t index) const {
      return function_->OutputOf(slot_, index);
    }

   private:
    friend class ModelFunction;
    Call(ModelFunction& function, size_t slot)
        : function_(&function), slot_(slot) {}

    ModelFunction* function_;
    size_t slot_;
  };

  // A function that writes the rows `values` [ids.size(), width] of a table, as
  // numbered in the graph. `ids` has each id once, and at least one.
  using RowSource = absl::FunctionRef<absl::Status(
      size_t table, absl::Span<const uint64_t> ids, absl::Span<float> values)>;
  // A function that takes gradients [ids.size(), width], summed by id.
  using RowSink =
      absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                             absl::Span<const float> gradients)>;

  // Arrays that Backward() writes gradients to. They overlap nothing else.
  struct Gradients {
    // One for each variable of the graph, of its size; empty if the variable's
    // gradient is not wanted. No arrays at all: none is wanted.
    absl::Span<const absl::Span<float>> variables = {};
    // One for each dense input, of the input's size, likewise.
    absl::Span<const absl::Span<float>> inputs = {};
    // Takes the rows' gradients at the end, once for each table that is not
    // frozen, perhaps without ids. nullopt: they are not wanted.
    std::optional<RowSink> rows = std::nullopt;
    // Called as soon as the gradient of a variable is complete, the last
    // layer's first, while gradients of layers before it are still to be
    // computed. Not called for a variable on which no output with a gradient
    // depends: its array is filled with 0, before all calls.
    absl::FunctionRef<void(size_t variable)> written = IgnoreVariable;

   private:
    static void IgnoreVariable(size_t /*variable*/) {}
  };

  // Borrows `device`. `graph`: of ResolveFunction(), or another one, whose
  // losses are not looked at.
  //   FailedPrecondition  this program lacks the code of a custom layer.
  //   ResourceExhausted   the device is full.
  static absl::StatusOr<std::unique_ptr<ModelFunction>> Create(Graph graph,
                                                               Device& device);
  virtual ~ModelFunction() = default;

  const Graph& graph() const { return graph_; }
  size_t num_outputs() const { return graph_.output_values.size(); }
  // Returns the shape of output `index` for one example.
  const Shape& output_shape(size_t index) const {
    return graph_.Producer(graph_.output_values[index])->layer->output_shape();
  }
  // Returns true if calls with training change the variable, as ReadChanges()
  // says: it is neither trained nor frozen.
  bool IsChangedByCalls(size_t variable) const {
    const VariableSpec& spec = graph_.variables[variable];
    return !spec.trained && !spec.frozen;
  }

  // Computes the outputs. What `inputs` and `variables` (one array for each of
  // the graph, of its size) point to is not copied: it must stay as it is until
  // the call is destroyed. `rows` is called for each table of which ids are
  // looked up; an error of it is returned.
  //   InvalidArgument    inputs or values do not fit: names the one at fault.
  //   ResourceExhausted  out of memory, or too many calls are open.
  //   Unavailable        the device was lost.
  //   others             a custom layer does not compute on this device.
  absl::StatusOr<Call> Forward(
      const InputViews& inputs,
      absl::Span<const absl::Span<const float>> variables, const Mode& mode,
      RowSource rows);
  // Does so for a graph without tables.
  absl::StatusOr<Call> Forward(
      const InputViews& inputs,
      absl::Span<const absl::Span<const float>> variables, const Mode& mode) {
    return Forward(inputs, variables, mode, NoRows);
  }

  // Computes the gradients of Σ output_gradients · outputs. There is one array
  // for each output, of its size; an empty one stands for zeros. May be called
  // several times for one call, with any gradients. Gradients by a call without
  // training are gradients of evaluation.
  //   InvalidArgument    an array does not fit, or a gradient is wanted by a
  //                      variable that is not trained: names it.
  //   ResourceExhausted  out of memory.
  //   Unavailable        the device was lost.
  virtual absl::Status Backward(
      const Call& call,
      absl::Span<const absl::Span<const float>> output_gradients,
      const Gradients& gradients) = 0;

  // Writes what a call with training changes of the variables for which
  // IsChangedByCalls() is true, the moving moments of batch normalizations:
  // what is to be subtracted from them. `changes`: one array for each variable
  // of the graph, empty for all others.
  //   InvalidArgument     an array does not fit.
  //   FailedPrecondition  the call is one without training.
  //   ResourceExhausted   out of memory.
  //   Unavailable         the device was lost.
  virtual absl::Status ReadChanges(
      const Call& call, absl::Span<const absl::Span<float>> changes) = 0;

 protected:
  explicit ModelFunction(Graph graph) : graph_(std::move(graph)) {}

  static size_t SlotOf(const Call& call) { return call.slot_; }

 private:
  static absl::Status NoRows(size_t table, absl::Span<const uint64_t> ids,
                             absl::Span<float> values);

  // A call lies in a slot. Open() returns one that is free.
  virtual absl::StatusOr<size_t> Open() = 0;
  virtual void Close(size_t slot) = 0;
  virtual absl::Status Run(size_t slot, const InputViews& inputs,
                           absl::Span<const absl::Span<const float>> variables,
                           const Mode& mode, RowSource rows) = 0;
  virtual int64_t ExamplesOf(size_t slot) const = 0;
  virtual absl::Span<const float> OutputOf(size_t slot, size_t index) const = 0;

  const Graph graph_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_MODEL_FUNCTION_H_
