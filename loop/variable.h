#ifndef PARASOL_LOOP_VARIABLE_H_
#define PARASOL_LOOP_VARIABLE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "loop/core/variable_state.h"
#include "ml/tape/tensor.h"

namespace parasol::loop {

// A float32 variable of a program, as tf.Variable: made in a strategy's scope,
// it has a value on each replica. Its name is its place in checkpoints. Cheap
// to copy: copies are the same variable.
//
// All variables are made before the program's first step.
class Variable {
 public:
  struct Options {
    // False: no tape watches it, and no optimizer takes it.
    bool trainable = true;
    Aggregation aggregation = Aggregation::kNone;
    Synchronization synchronization = Synchronization::kOnWrite;
  };

  // Makes a variable of the strategy whose scope is open, or of the default
  // one.
  //   AlreadyExists       a variable has this name.
  //   InvalidArgument     the value is an error or of int64, or the name is
  //                       empty.
  //   FailedPrecondition  the strategy has run a step.
  static absl::StatusOr<Variable> Create(absl::string_view name,
                                         const Tensor& value,
                                         const Options& options);
  static absl::StatusOr<Variable> Create(absl::string_view name,
                                         const Tensor& value) {
    return Create(name, value, Options());
  }
  // Makes one whose initial value `initializer` draws, a text as in a job file:
  // "glorot_uniform {}". It depends on the strategy's seed, the name and the
  // shape alone.
  static absl::StatusOr<Variable> Create(absl::string_view name,
                                         const TensorShape& shape,
                                         absl::string_view initializer,
                                         const Options& options);
  static absl::StatusOr<Variable> Create(absl::string_view name,
                                         const TensorShape& shape,
                                         absl::string_view initializer) {
    return Create(name, shape, initializer, Options());
  }

  // Makes a variable of a model, which `spec` describes but for its shape. What
  // changes it besides optimizers has the mean over the replicas.
  static absl::StatusOr<Variable> Create(VariableSpec spec,
                                         const Tensor& value);

  const std::string& name() const { return state_->spec().name; }
  const TensorShape& shape() const { return state_->shape(); }
  bool trainable() const { return state_->spec().trained; }

  // Returns the value: in a step the replica's, which active tapes watch if the
  // variable is trainable; outside what the aggregation makes of all.
  Tensor Read() const;
  operator Tensor() const { return Read(); }  // NOLINT

  // Change the value, as VariableState::Apply() says.
  absl::Status Assign(const Tensor& value) const {
    return state_->Apply(VariableState::Change::kAssign, value);
  }
  absl::Status AssignAdd(const Tensor& amount) const {
    return state_->Apply(VariableState::Change::kAdd, amount);
  }
  absl::Status AssignSub(const Tensor& amount) const {
    return state_->Apply(VariableState::Change::kSubtract, amount);
  }

  // Returns "v: [2, 3] float32 [[0.5, …]]".
  std::string ToString() const;

  // What a tape knows the variable by.
  const void* key() const { return state_.get(); }
  const std::shared_ptr<VariableState>& state() const { return state_; }

 private:
  explicit Variable(std::shared_ptr<VariableState> state)
      : state_(std::move(state)) {}

  std::shared_ptr<VariableState> state_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_VARIABLE_H_
