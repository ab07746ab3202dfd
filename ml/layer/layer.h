#ifndef PARASOL_ML_LAYER_LAYER_H_
#define PARASOL_ML_LAYER_LAYER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/device/elements.h"
#include "ml/kernel/pass_argument.h"
#include "ml/layer/variable_spec.h"

namespace parasol {

// Axes of one example, without the batch; images are height, width, channels.
using Shape = std::vector<int64_t>;

// Number of elements of an example of this shape; 1 for a scalar, {}.
inline int64_t ElementsOf(absl::Span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t axis : shape) elements *= axis;
  return elements;
}

// An input of a layer: a float32 tensor, or (for embedding layers) a list of
// ids that are looked up in a sparse table.
struct LayerInput {
  enum class Kind { kDense, kIds };
  Kind kind = Kind::kDense;
  Shape shape = {};  // dense
  // Number of ids of each example, for kIds; 0: any number.
  int64_t ids_per_example = 0;
};

// The rows of a sparse table that a batch needs, and the examples that need
// them. All addresses are in the device's memory. How many rows and ids there
// are is not known here, because a recorded pass has other ones in each replay.
struct RowsView {
  // The rows and, in the backward pass, their gradients. A layer adds to the
  // latter, because several layers may read one table.
  const TableRows* table = nullptr;
  // Start of each example's positions and weights: example i has [offsets[i],
  // offsets[i + 1]).
  const int32_t* offsets = nullptr;    // [examples + 1]
  const int32_t* positions = nullptr;  // indices of rows
  const float* weights = nullptr;      // null: all 1
  RowPlaces by_row = {};  // the same positions row by row, on a CUDA device
};

// One layer for batches of a given number of examples, on one device, with the
// memory and the primitives for them, so that a step allocates nothing. All
// work is enqueued on the compute stream. Not thread-safe.
class LayerPass {
 public:
  // Arguments of the forward pass. Arrays are row-major, [examples, shape...],
  // in the device's memory, and stay until the backward pass is over. Elements
  // are float32, and convert to `const float*` or `float*`, unless
  // Layer::bfloat16_use() allows another type: then all dense x and y have one
  // type. `variables` are the values of the layer's own variables, in the order
  // of Layer::variables().
  struct Forward {
    absl::Span<const ConstElements> x;  // one for each input; null for ids
    Elements y;
    absl::Span<const float* const> variables;
    RowsView rows;
    bool training = false;
    // Seed of all randomness in this pass: the same seed gives the same values.
    uint64_t seed = 0;
    // `seed` where kernels read it; for layers that draw from it.
    StoredSeed stored_seed;
  };
  struct Backward {
    absl::Span<const ConstElements> x;
    ConstElements y;
    // Gradient of the loss by y, of y's type. The layer may change it in place.
    Elements dy;
    // Gradients of the loss by each x, of its type, which the layer writes
    // (does not add to). Null if the gradient is not wanted. They overlap no
    // other array.
    absl::Span<const Elements> dx;
    absl::Span<const float* const> variables;
    // Gradients by the variables, which the layer writes. For a variable that
    // is not trained it is the number to be subtracted from it. All null if
    // none is wanted, for layers that say SkipsGradients().
    absl::Span<float* const> gradients;
    RowsView rows;
    // Three members that equal the ones of Forward.
    bool training = true;
    uint64_t seed = 0;
    StoredSeed stored_seed;
  };

  virtual ~LayerPass() = default;

  virtual absl::Status RunForward(const Forward& pass) = 0;

  // Two halves of the backward pass. They are called after RunForward(), one
  // right after the other and with the same argument, as often as gradients by
  // the output are given for that forward pass.
  // RunVariableGradients() writes all `gradients` (which are sent while the
  // second half computes) and may write any other output. RunInputGradients()
  // writes the rest: dx, gradients of rows. It is not called if neither is
  // wanted.
  virtual absl::Status RunVariableGradients(const Backward& pass) = 0;
  virtual absl::Status RunInputGradients(const Backward& pass) = 0;

  // Writes `changes`, what is to be subtracted from the variables that are not
  // trained, after RunForward() with training and before the next one. A
  // backward pass with training writes the same as their gradients. `changes`
  // has one array for each variable; null for those that are trained.
  virtual absl::Status RunUntrainedChanges(
      absl::Span<const float* const> /*variables*/,
      absl::Span<float* const> /*changes*/) {
    return absl::OkStatus();
  }
};

// Says when a layer's dense inputs, its output and their gradients are
// bfloat16, on a device whose edge_type() that is.
enum class Bfloat16Use {
  kNever,
  kIfInputsAre,  // all of them
  kAlways,       // the layer rounds its inputs to bfloat16 anyway
};

// A layer of a model: the shape of its output and its variables. Immutable, and
// needs no device: the chief places variables by it.
class Layer {
 public:
  virtual ~Layer() = default;

  const Shape& output_shape() const { return output_shape_; }
  // Variables of the layer, named without the layer: "kernel".
  const std::vector<VariableSpec>& variables() const { return variables_; }
  // The l2 of each variable, as long as variables(); 0 for none. The model adds
  // l2 · (sum of squares) to the loss.
  const std::vector<double>& variable_l2() const { return variable_l2_; }
  // Name of the sparse table that the layer reads; empty if none.
  const std::string& table() const { return table_; }
  // The l2 of the rows that a batch reads.
  double row_l2() const { return row_l2_; }

  // Checks that this program has the code that computes the layer, which only a
  // custom layer may lack.
  //   FailedPrecondition  it does not: names the layer's type, and what to do.
  virtual absl::Status CheckCode() const { return absl::OkStatus(); }

  // Returns true if each example must give exactly one id for each column of
  // the input in which the layer looks up rows.
  virtual bool NeedsEveryId() const { return false; }

  // Returns true if the layer is a relu and nothing else.
  virtual bool IsRelu() const { return false; }
  // Returns the same layer with a relu on its output, computed by the same
  // kernel, or null if it has no such form.
  virtual std::unique_ptr<const Layer> WithRelu() const { return nullptr; }
  // Returns true if the layer is the sum of its inputs and nothing else.
  virtual bool IsSum() const { return false; }
  // Returns the same layer with one more input, behind the others and of the
  // output's shape, which its kernel adds to the output; or null if it has no
  // such form. WithRelu() of the result is the relu of that sum.
  virtual std::unique_ptr<const Layer> WithTerm() const { return nullptr; }
  // Returns true if the output has the bytes of the only input. Nothing is
  // computed then, and NewPass() is not called.
  virtual bool IsView() const { return false; }

  // Two properties that save the model a copy in the backward pass.
  // KeepsOutputGradient(): dy is only read, so that another layer may read it
  // too.
  virtual bool KeepsOutputGradient() const { return false; }
  // PassesGradientOn(): the dx of that input equals dy as
  // RunVariableGradients() leaves it (as for a sum's terms). It is not asked
  // for, and if it is the only one, RunInputGradients() is not called.
  virtual bool PassesGradientOn(size_t /*input*/) const { return false; }

  // Returns true if passes compute no gradients by variables when
  // Backward::gradients are null. Other layers never get null.
  virtual bool SkipsGradients() const { return false; }

  // Returns true if the layer's kernels read `stored_seed`, without which it is
  // not stored.
  virtual bool ReadsStoredSeed() const { return false; }

  // Returns when the layer's passes take elements of bfloat16.
  virtual Bfloat16Use bfloat16_use() const { return Bfloat16Use::kNever; }

  // Returns true if a training pass may be recorded and replayed
  // (ml/device/recorder.h): for the same arrays it enqueues the same work,
  // whatever they hold and whatever `seed` is, and computes nothing on the
  // host.
  virtual bool IsRecordable() const { return false; }

  // Returns a pass for batches of `examples` examples each. It borrows the
  // device and the layer.
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
