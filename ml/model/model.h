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
#include "ml/input/batch.h"
#include "ml/kernel/device.h"
#include "ml/model/variable_spec.h"
#include "proto/job.pb.h"

namespace parasol {

// Sums over a batch, so that batches of different sizes add up exactly.
struct BatchResult {
  int64_t examples = 0;
  double loss_sum = 0;  // of the per-example losses
  int64_t correct = 0;  // examples whose largest logit is the label's
};

// A model built from the job, on one device. Variables are numbered as
// VariablesOf(spec) lists them. It keeps the device memory of its activations
// for the largest batch that it has seen: a step of the same size allocates
// nothing. Not thread-safe; one thread at a time.
class Model {
 public:
  //   InvalidArgument  the spec is not a model; names the layer.
  static absl::StatusOr<std::unique_ptr<Model>> Create(const job::Model& spec,
                                                       Device& device);
  virtual ~Model() = default;

  virtual const std::vector<VariableSpec>& variables() const = 0;

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

  // Forward and backward pass over `batch`: the gradient of the batch's *mean*
  // loss. `ready(index, gradient)` is called from this thread, last layer
  // first, as soon as a variable's gradient is in host memory; `gradient`
  // stays valid until the second next call of Gradients() (double-buffered, so
  // that it can be sent while the next step computes).
  //   InvalidArgument  the batch is empty, not of the model's input shape, or a
  //                    label is no class: names it.
  //   Unavailable      the device was lost.
  virtual absl::StatusOr<BatchResult> Gradients(
      const Batch& batch,
      absl::FunctionRef<void(size_t index, absl::Span<const float> gradient)>
          ready) = 0;

  // Forward pass only. Errors as above.
  virtual absl::StatusOr<BatchResult> Evaluate(const Batch& batch) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_MODEL_H_
