#ifndef PARASOL_ML_MODEL_LAYER_H_
#define PARASOL_ML_MODEL_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/kernel/device.h"
#include "ml/kernel/matrix.h"
#include "ml/model/resolved_model.h"

namespace parasol {

// One step of a model's forward and backward pass. Owns no memory: values and
// gradients of all of the model's variables come as arrays indexed like
// ResolvedModel::variables, on the device. Everything is enqueued on the
// compute stream. Immutable.
class Layer {
 public:
  virtual ~Layer() = default;

  // Elements of one example coming out.
  virtual int64_t outputs() const = 0;

  // Which variables VariableGradients() writes, in the order they are sent.
  virtual absl::Span<const size_t> variables() const = 0;

  virtual absl::Status Forward(Device& device,
                               absl::Span<const float* const> values,
                               MatrixView x, MutableMatrixView y) const = 0;

  // Of the two backward functions this one is called first. `x` and `y` are as
  // Forward() left them; `dy` is the loss's gradient by `y`, and may be changed
  // in place into what InputGradient() starts from.
  virtual absl::Status VariableGradients(
      Device& device, MatrixView x, MatrixView y, MutableMatrixView dy,
      absl::Span<float* const> gradients) const = 0;

  // dx: the loss's gradient by `x`.
  virtual absl::Status InputGradient(Device& device,
                                     absl::Span<const float* const> values,
                                     MatrixView y, MatrixView dy,
                                     MutableMatrixView dx) const = 0;
};

// The layers that compute something: flattening and linear activations do not,
// and a relu after a dense layer becomes part of it.
std::vector<std::unique_ptr<const Layer>> MakeLayers(
    const ResolvedModel& model);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_LAYER_H_
