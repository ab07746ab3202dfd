#ifndef PARASOL_LOOP_MODEL_H_
#define PARASOL_LOOP_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "loop/variable.h"
#include "ml/tape/tensor.h"

namespace parasol::job {
class Model;  // proto/job.pb.h
}  // namespace parasol::job

namespace parasol::loop {

class ModelState;  // loop/core/model_state.h

struct ModelOptions {
  // Key of the initial values. Default: the strategy's seed. Models of one
  // graph begin with the same values unless their seeds differ.
  std::optional<uint64_t> seed = std::nullopt;
  // Number of rows of each sparse table of the model: ids are from 0.
  std::map<std::string, int64_t> table_rows = {};
};

struct CallOptions {
  // Dropout drops, and batch normalization takes the moments of the batch and
  // moves its own.
  bool training = false;
  // Key of all randomness of the call. Default: another one for each call of
  // each step on each replica.
  std::optional<uint64_t> seed = std::nullopt;
};

// The outputs of a call, by their names in the model.
class ModelOutputs {
 public:
  ModelOutputs(std::shared_ptr<const ModelState> model,
               std::vector<Tensor> tensors)
      : model_(std::move(model)), tensors_(std::move(tensors)) {}

  // Returns an output, [examples, shape...].
  //   NotFound  (as the tensor's status) the model has none of this name.
  Tensor operator[](absl::string_view name) const;
  // Returns all of them, in the model's order.
  const std::vector<Tensor>& tensors() const { return tensors_; }

 private:
  std::shared_ptr<const ModelState> model_;
  std::vector<Tensor> tensors_;
};

// A job's graph of layers as an object of a program, as tf.keras.Model: a
// function of its inputs, with variables "<name>/<layer>/kernel" of its own.
// Cheap to copy: copies are the same model.
//
//   ASSIGN_OR_RETURN(const Model model, Model::Create("classifier",
//       "input_shape: [28, 28] layer { flatten {} }"
//       "layer { dense { units: 10 } }"));
//   const Tensor logits = model.Call(images, {.training = true});
//
// Calls are operations on tapes, by the model's variables and by its inputs; a
// step may have any number of them. They have no second derivative. Losses and
// metrics of the text are not looked at.
//
// Made in a strategy's scope, before its first step; called in its steps, by
// each replica for itself, or outside, by the program's thread.
class Model {
 public:
  // Makes a model from text: what a job file has within `model { … }`, or a
  // whole job file, of which the model is taken.
  //   InvalidArgument      the text is no model: names the line, or the layer;
  //                        a table has no number of rows.
  //   AlreadyExists        a model or a variable has this name.
  //   FailedPrecondition   the strategy has run a step; or this program lacks
  //                        the code of a custom layer.
  static absl::StatusOr<Model> Create(absl::string_view name,
                                      absl::string_view text,
                                      const ModelOptions& options = {});
  // Does so from a model of ModelBuilder (ml/builder) or of the zoo (ml/zoo).
  static absl::StatusOr<Model> Create(absl::string_view name,
                                      const job::Model& spec,
                                      const ModelOptions& options = {});
  // Does so from a job file.
  //   NotFound  there is no such file.
  static absl::StatusOr<Model> FromJobFile(absl::string_view name,
                                           const std::string& path,
                                           const ModelOptions& options = {});

  const std::string& name() const;
  // All variables, in the order of the layers, then the tables [rows, width].
  const std::vector<Variable>& variables() const { return *variables_; }
  // Returns those that optimizers train: all but frozen ones and the moving
  // moments of batch normalization.
  std::vector<Variable> trainable_variables() const;

  // Computes the model's only output, [examples, shape...], of its only input,
  // or of all of its inputs in its order: float32 [examples, shape...], and
  // int64 [examples, ids] of ids. There may be no examples.
  //   InvalidArgument  (as the result's status) an input does not fit: names
  //                    the model and the input; or there are several outputs.
  Tensor Call(const Tensor& input, const CallOptions& options = {}) const {
    return Call(absl::MakeConstSpan(&input, 1), options);
  }
  Tensor Call(absl::Span<const Tensor> inputs,
              const CallOptions& options = {}) const;
  // Does so for a model of several outputs.
  ModelOutputs CallAll(absl::Span<const Tensor> inputs,
                       const CallOptions& options = {}) const;

  // Returns the sum of the layers' L2 terms, Σ l2 · Σ w², which a loss that is
  // to have them adds, divided by the number of replicas: all replicas' losses
  // are added. 0 if there are none. Tables' terms are not in it.
  Tensor RegularizationLoss() const;

 private:
  Model(std::shared_ptr<ModelState> state, std::vector<Variable> variables);

  std::shared_ptr<ModelState> state_;
  std::shared_ptr<const std::vector<Variable>> variables_;
};

}  // namespace parasol::loop

#endif  // PARASOL_LOOP_MODEL_H_
