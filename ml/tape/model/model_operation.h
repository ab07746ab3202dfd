#ifndef PARASOL_ML_TAPE_MODEL_MODEL_OPERATION_H_
#define PARASOL_ML_TAPE_MODEL_MODEL_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/function/model_function.h"
#include "ml/tape/tensor.h"
#include "proto/job.pb.h"

namespace parasol {

// A whole model as one operation on tensors, which tapes record. It computes on
// its device, and tensors are in the host's memory; a device with memory of its
// own is sent the values of variables that have changed since the last call:
//
//   GradientTape tape;
//   const Tensor images = generator.Call({.inputs = {noise}, …}).outputs[0];
//   const Tensor score = discriminator.Call({.inputs = {images},
//   …}).outputs[0]; const auto gradients = tape.Gradient(Loss(score),
//   generator_variables);
//
// A tape that follows one of its inputs or variables keeps what the gradient
// needs of the call until it has given its gradients or is destroyed; otherwise
// nothing of it is kept. Has no second derivative. Not thread-safe: the thread
// that calls it, and has the tapes, is the only one; threads have an operation
// each.
class ModelOperation {
 public:
  struct Arguments {
    // The dense inputs in the model's order, float32 [examples, shape...].
    absl::Span<const Tensor> inputs = {};
    // The id inputs, int64 [examples, ids of each]; ids are from 0.
    absl::Span<const Tensor> ids = {};
    // The variables' values in the graph's order, each of its shape: leaves, as
    // a rule (ml/tape/tape.h).
    absl::Span<const Tensor> variables = {};
    // The tables in the graph's order, [rows, width]: an id is the number of a
    // row.
    absl::Span<const Tensor> tables = {};
    bool training = false;
    // Seed of all randomness of the call. Calls that are to draw different
    // numbers have different ones.
    uint64_t seed = 0;
  };

  // Change of a variable that no gradient trains, such as a moving mean:
  // `change` is to be subtracted from variable number `variable` of the graph.
  struct Change {
    size_t variable = 0;
    Tensor change;
  };
  struct Result {
    // One tensor for each output, [examples, shape...]. All are errors if one
    // is.
    std::vector<Tensor> outputs;
    // Changes that a call with training makes. Empty otherwise.
    std::vector<Change> changes = {};
  };

  // `graph`: of ResolveFunction(), or another one, whose losses are not looked
  // at. `name` names the model in errors: "generator"; on a device with memory
  // of its own they name that, too. Borrows `device`.
  // Errors: as ModelFunction::Create() gives.
  static absl::StatusOr<std::unique_ptr<ModelOperation>> Create(
      absl::string_view name, Graph graph, Device& device);

  ModelOperation(const ModelOperation&) = delete;
  ModelOperation& operator=(const ModelOperation&) = delete;

  const Graph& graph() const { return function_->graph(); }

  // Computes the outputs. Of no examples they are empty, change nothing, and
  // have gradients of 0. An error of an argument is all outputs' status.
  //   InvalidArgument    arguments do not fit the model: names the model and
  //                      the one at fault.
  //   ResourceExhausted  there is no memory, on the host or the device.
  //   Unavailable        the device was lost.
  Result Call(const Arguments& arguments);

  // Returns Σ l2 · (sum of squares) of the variables that have an l2 in the
  // model, as Keras has it in model.losses: 0 if there are none. The l2 of
  // tables is not in it. `variables` are the arguments of Call(); an error of
  // one is the result's.
  Tensor RegularizationLoss(absl::Span<const Tensor> variables) const;

 private:
  struct OpenCall;

  ModelOperation(std::string name, std::unique_ptr<ModelFunction> function);

  absl::Status Check(const Arguments& arguments) const;
  // Returns the error as a tensor, with the model's name.
  Tensor Failed(const absl::Status& status) const;
  absl::StatusOr<Result> TryCall(const Arguments& arguments);
  absl::StatusOr<Result> CallWithoutExamples(std::shared_ptr<OpenCall> call);
  absl::StatusOr<std::vector<Change>> ReadChanges(
      const ModelFunction::Call& call) const;
  void Record(std::shared_ptr<OpenCall> call,
              absl::Span<const Tensor> outputs) const;

  const std::string name_;
  // Shared with tapes that have recorded calls.
  const std::shared_ptr<ModelFunction> function_;
  // Numbers of a call's values; kept here lest each call allocates.
  std::vector<uint64_t> versions_;
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_MODEL_MODEL_OPERATION_H_
