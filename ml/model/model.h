#ifndef PARASOL_ML_MODEL_MODEL_H_
#define PARASOL_ML_MODEL_MODEL_H_

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
#include "proto/job.pb.h"

namespace parasol {

// Sums over a batch, so that batches of different sizes add up exactly.
struct BatchResult {
  int64_t examples = 0;
  // Of the per-example losses, each times its weight, and `examples` times the
  // L2 terms: divided by `examples` it is Keras's loss.
  double loss_sum = 0;
};

// A sparse table that a model reads.
struct TableUse {
  std::string name;
  int64_t width = 0;
};

// A batch on its way through a model: its ids looked up, its rows, and on a
// CUDA device its copy there. Its memory is used again from batch to batch.
class StagedBatch {
 public:
  // What the batch needs of one table. `values` [ids.size(), width] is for the
  // caller to write before the pass: a pull's target.
  struct Rows {
    size_t table = 0;
    absl::Span<const uint64_t> ids;  // each once
    absl::Span<float> values;
  };

  virtual ~StagedBatch() = default;

  // One for each of Model::tables(), perhaps without ids. Valid until the next
  // Stage() of this batch.
  virtual absl::Span<const Rows> rows() const = 0;
};

// Who gets the gradients of a pass: called from its thread, last layer first,
// as soon as a gradient is in host memory. It stays valid until the second next
// call of Gradients() (double-buffered, so that it can be sent while the next
// step computes).
struct GradientSinks {
  absl::FunctionRef<void(size_t variable, absl::Span<const float> gradient)>
      variable;
  // After all variables, each of Model::tables() once, perhaps without ids;
  // `gradients` [ids.size(), width] is summed by id.
  absl::FunctionRef<void(size_t table, absl::Span<const uint64_t> ids,
                         absl::Span<const float> gradients)>
      rows;
};

struct EvaluatedBatch {
  BatchResult result;
  // [examples, outputs of the last layer], on the host, until the next pass.
  absl::Span<const float> outputs;
};

// A model built from the job, on one device. Variables are numbered as
// VariablesOf(spec) lists them, tables as in spec.sparse_table. It keeps the
// memory of its activations for the largest batch that it has seen: a step of
// the same size allocates nothing. Not thread-safe; one thread at a time.
class Model {
 public:
  //   InvalidArgument  the spec is not a model; names the layer.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const job::Model& spec,
                                                       Device& device);
  virtual ~Model() = default;

  virtual const std::vector<VariableSpec>& variables() const = 0;
  virtual const std::vector<TableUse>& tables() const = 0;

  // Where the next value of variable `index` is written on the host, float32,
  // by the caller (a pull's target; pinned memory on a CUDA device). It is
  // another array than the one that Gradients() and Evaluate() read, so a pull
  // may fill it while a step computes. Valid, with unspecified contents, until
  // the next Upload(index).
  virtual absl::Span<float> HostValue(size_t index) = 0;

  // Makes what was written to HostValue(index) the value that the next pass
  // reads: an exchange of two arrays on the CPU, a copy to the device on CUDA.
  // HostValue(index) is another array afterwards.
  virtual absl::Status Upload(size_t index) = 0;

  // For batches of this model, which must outlive it. One is enough, or two to
  // stage a batch while the other one's rows are on their way.
  virtual std::unique_ptr<StagedBatch> NewStagedBatch() = 0;

  // Takes `batch`, which must stay until its pass is over, into `staged`, whose
  // own pass is over.
  //   InvalidArgument  the batch is empty, does not fit the model's inputs, or
  //                    a label is none of the loss's: names it.
  //   Unavailable      the device was lost.
  virtual absl::Status Stage(const Batch& batch, StagedBatch& staged) = 0;

  // Forward and backward pass: the gradient of the batch's *mean* loss. `seed`
  // is all that is random in this pass (dropout).
  //   Unavailable  the device was lost.
  virtual absl::StatusOr<BatchResult> Gradients(StagedBatch& staged,
                                                uint64_t seed,
                                                GradientSinks sinks) = 0;

  // Forward pass only, as in evaluation: nothing is dropped. Errors as above.
  virtual absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_MODEL_H_
