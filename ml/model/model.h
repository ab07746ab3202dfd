#ifndef PARASOL_ML_MODEL_MODEL_H_
#define PARASOL_ML_MODEL_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/input/feature/batch.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/graph.h"

namespace parasol {

class DeviceTraining;

// Sums over a batch, so that batches of different sizes add up exactly.
struct BatchResult {
  int64_t examples = 0;
  // Sum of the per-example losses, each times its weight, plus `examples` times
  // the L2 terms. Divided by `examples` it is Keras's loss.
  double loss_sum = 0;
  // Sum of the losses of each of the model's named outputs, without the
  // output's weight in the model's loss and without L2 terms. Divided by
  // `examples` it is the mean over the examples that count for the output.
  std::vector<double> output_loss_sums = {};

  // Adds the sums of another batch.
  void Add(const BatchResult& other) {
    examples += other.examples;
    loss_sum += other.loss_sum;
    // A pass without examples may have none.
    output_loss_sums.resize(
        std::max(output_loss_sums.size(), other.output_loss_sums.size()));
    for (size_t i = 0; i < other.output_loss_sums.size(); ++i) {
      output_loss_sums[i] += other.output_loss_sums[i];
    }
  }
};

// A sparse table that a model reads.
struct TableUse {
  std::string name;
  int64_t width = 0;
};

// A batch on its way through a model, with its ids looked up, its rows, and on
// a CUDA device its copy there. Its memory is used again from batch to batch.
class StagedBatch {
 public:
  // The rows of one table that the batch needs. The caller writes `values`
  // [ids.size(), width] before the pass: it is the target of a pull.
  struct Rows {
    size_t table = 0;
    absl::Span<const uint64_t> ids;  // each once
    absl::Span<float> values;
    // How often each id occurs in the batch's examples, over all inputs that
    // read the table; empty unless GraphTable::counts.
    absl::Span<const uint32_t> counts = {};
  };

  virtual ~StagedBatch() = default;

  // Number of the next pass, of a model whose gradients come in several:
  // Model::fragments().
  size_t pass = 0;

  // The rows of each of Model::tables(), perhaps without ids, but of none that
  // is in the device's memory (DeviceTraining::UseTables()). Valid until the
  // next Stage() of this batch.
  virtual absl::Span<const Rows> rows() const = 0;

  // Returns the counts of the ids that GradientSinks::rows gave: all of a
  // table's, or, if it is frozen, none.
  absl::Span<const uint32_t> CountsOf(size_t table,
                                      absl::Span<const uint64_t> ids) const {
    for (const Rows& of : rows()) {
      if (of.table == table && !ids.empty()) return of.counts;
    }
    return {};
  }
};

// Callbacks that take the gradients of a pass. They are called from the pass's
// thread, last layer first, as soon as a gradient is in host memory; a CUDA
// device brings the gradients of some layers together. The
// gradient stays valid until the second next call of Gradients(): it is
// double-buffered, so that it can be sent while the next step computes.
struct GradientSinks {
  // Is not called for variables that are frozen.
  absl::FunctionRef<void(size_t variable, absl::Span<const float> gradient)>
      variable;
  // Called after all variables, once for each of StagedBatch::rows(), perhaps
  // without ids, as for a table that is frozen. `gradients` [ids.size(), width]
  // is summed by id.
  absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                         absl::Span<const float> gradients)>
      rows;
};

struct EvaluatedBatch {
  BatchResult result;
  // Outputs [examples, Graph::output_width()] on the host: for each example all
  // outputs in their order. Valid until the next pass.
  absl::Span<const float> outputs;
};

// A model built from the job, on one device. Variables and tables are numbered
// as in its Graph. It keeps the memory of its activations for the largest batch
// that it has seen, so a step of the same size allocates nothing. Not
// thread-safe; one thread at a time.
class Model {
 public:
  // Builds the model of `graph` on `device`.
  //   InvalidArgument     the graph is a function's: it has no loss.
  //   FailedPrecondition  this program lacks the code of a custom layer: names
  //                       layer and type, and what to do.
  //   ResourceExhausted   the device is full.
  static absl::StatusOr<std::unique_ptr<Model>> Create(Graph graph,
                                                       Device& device);
  virtual ~Model() = default;

  virtual const std::vector<VariableSpec>& variables() const = 0;
  virtual const std::vector<TableUse>& tables() const = 0;

  // Host memory, float32, to which the caller writes the next value of variable
  // `index` (the target of a pull; pinned on a CUDA device). Gradients() and
  // Evaluate() read another array, so a pull may fill this one while a step
  // computes. Valid, with unspecified contents, until the next Upload(index).
  virtual absl::Span<float> HostValue(size_t index) = 0;

  // Makes the contents of HostValue(index) the value that the next pass reads:
  // the CPU exchanges two arrays, CUDA copies to the device, with the values
  // beside it as soon as they are there, and before the pass in any case.
  // HostValue(index) is another array afterwards.
  virtual absl::Status Upload(size_t index) = 0;

  // Returns an object for batches of this model, which must outlive it. One is
  // enough; two allow staging a batch while the other one's rows are on their
  // way.
  virtual std::unique_ptr<StagedBatch> NewStagedBatch() = 0;

  // Puts `batch` into `staged`. The caller keeps `batch` until its pass is
  // over, and stages only when the last pass of `staged` is over.
  //   InvalidArgument  the batch is empty, does not fit the model's inputs, or
  //                    has a label that the loss does not accept: names it.
  //   Unavailable      the device was lost.
  virtual absl::Status Stage(const Batch& batch, StagedBatch& staged) = 0;

  // Runs the forward and backward pass for the gradient of the batch's *mean*
  // loss. All randomness of the pass (dropout) comes from `seed`.
  //   Unavailable  the device was lost.
  virtual absl::StatusOr<BatchResult> Gradients(StagedBatch& staged,
                                                uint64_t seed,
                                                GradientSinks sinks) = 0;

  // Runs the forward pass only, as in evaluation, without dropout. Fails as
  // Gradients() does.
  virtual absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) = 0;

  // Returns the variables of which each of a batch's passes gives the
  // gradients, each of them in one pass. What a pass gives is exchanged before
  // the next one begins: its new values, no others, are uploaded then. The
  // first batch begins with values of all. A gradient is valid until the next
  // batch's pass of that number. Empty: Gradients() gives all, and each batch
  // begins with values of all variables.
  virtual std::vector<std::vector<size_t>> fragments() const { return {}; }

  // Returns the model's passes with variables that stay in its device's memory.
  // Null if there are none, as on a CPU.
  virtual DeviceTraining* device_training() { return nullptr; }
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_MODEL_H_
