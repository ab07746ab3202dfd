#ifndef PARASOL_ML_LAYER_LAYER_H_
#define PARASOL_ML_LAYER_LAYER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"

namespace parasol {

// Axes of one example, without the batch; images are height, width, channels.
using Shape = std::vector<int64_t>;

// 1 for a scalar: {}.
inline int64_t ElementsOf(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t axis : shape) elements *= axis;
  return elements;
}

// What comes into a layer: a float32 tensor, or (embedding layers) a list of
// ids that are looked up in a sparse table.
struct LayerInput {
  enum class Kind { kDense, kIds };
  Kind kind = Kind::kDense;
  Shape shape = {};  // dense
  // Ids: how many each example has; 0: any number.
  int64_t ids_per_example = 0;
};

// The rows of a sparse table that a batch needs, and who needs them. Arrays are
// in the device's memory.
struct RowsView {
  const float* rows = nullptr;  // [num_rows, width], each id's once
  int64_t num_rows = 0;
  // Of example i: positions and weights [offsets[i], offsets[i + 1]).
  const int32_t* offsets = nullptr;    // [examples + 1]
  const int32_t* positions = nullptr;  // [total]: which of `rows`
  const float* weights = nullptr;      // [total]; null: all 1
  int64_t total = 0;
};

// One layer for batches of a given number of examples, on one device: with the
// memory and the primitives that this takes, so that a step allocates nothing.
// Everything is enqueued on the compute stream. Not thread-safe.
class LayerPass {
 public:
  // Arrays are float32, row-major, [examples, shape...], in the device's
  // memory, and stay until the backward pass is over. `variables`: values of
  // the layer's own, in the order of Layer::variables().
  struct Forward {
    absl::Span<const float* const> x;  // one for each input; null: ids
    float* y = nullptr;
    absl::Span<const float* const> variables;
    RowsView rows;
    bool training = false;
    // Of what is random in this pass: the same number, the same values.
    uint64_t seed = 0;
  };
  struct Backward {
    absl::Span<const float* const> x;
    const float* y = nullptr;
    // The loss's gradient by y. May be changed in place.
    float* dy = nullptr;
    // The loss's gradient by each x, to be written (not added to). Null where
    // nobody wants it. Overlaps nothing.
    absl::Span<float* const> dx;
    absl::Span<const float* const> variables;
    // To be written. Of a variable that is not trained: what is to be
    // subtracted from it.
    absl::Span<float* const> gradients;
    RowsView rows;
    // [num_rows, width], to be added to: a table may have several layers.
    float* row_gradients = nullptr;
    uint64_t seed = 0;  // that of Forward
  };

  virtual ~LayerPass() = default;

  virtual absl::Status RunForward(const Forward& pass) = 0;

  // The backward pass is these two, after RunForward() with training, one right
  // after the other and with the same argument. The first one writes all
  // `gradients` (which leave while the second one computes) and may write what
  // else it likes; the second one writes what is left: dx, row_gradients. It is
  // not called where neither is wanted.
  virtual absl::Status RunVariableGradients(const Backward& pass) = 0;
  virtual absl::Status RunInputGradients(const Backward& pass) = 0;
};

// A layer of a model: what shape its output has and which variables. Immutable,
// and needs no device: the chief places variables by it.
class Layer {
 public:
  virtual ~Layer() = default;

  const Shape& output_shape() const { return output_shape_; }
  // Named without the layer: "kernel".
  const std::vector<VariableSpec>& variables() const { return variables_; }
  // l2 of each variable: l2 · (sum of squares) is the model's to add to the
  // loss. As long as variables(); 0: none.
  const std::vector<double>& variable_l2() const { return variable_l2_; }
  // Of the sparse table that it reads; empty: none.
  const std::string& table() const { return table_; }
  // l2 of the rows that a batch reads.
  double row_l2() const { return row_l2_; }

  // The same layer with a relu on its output, computed at once; null: it has no
  // such form.
  virtual std::unique_ptr<const Layer> WithRelu() const { return nullptr; }
  // Its output has the bytes of its only input: there is nothing to compute,
  // and NewPass() is not called.
  virtual bool IsView() const { return false; }

  // What saves the model a copy in the backward pass:
  // dy is only read, so that another layer may have the same one.
  virtual bool KeepsOutputGradient() const { return false; }
  // Every dx is dy as RunVariableGradients() leaves it (a sum's terms):
  // RunInputGradients() is not called.
  virtual bool PassesGradientOn() const { return false; }

  // A training pass of it may be recorded and replayed (ml/device/recorder.h):
  // it reads neither seed nor rows, and for the same arrays it enqueues the
  // same work, which computes nothing on the host.
  virtual bool IsRecordable() const { return false; }

  // `examples`: of every batch that goes through the pass. Borrows the device
  // and the layer.
  //   ResourceExhausted  the device is full.
  virtual absl::StatusOr<std::unique_ptr<LayerPass>> NewPass(
      Device& device, int64_t examples) const = 0;

 protected:
  Shape output_shape_;
  std::vector<VariableSpec> variables_;
  std::vector<double> variable_l2_;
  std::string table_;
  double row_l2_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_LAYER_H_
