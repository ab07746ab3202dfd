#ifndef PARASOL_ML_TAPE_OPERATION_H_
#define PARASOL_ML_TAPE_OPERATION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/tape/random_key.h"
#include "ml/tape/tensor.h"
#include "ml/tape/tensor_body.h"
#include "ml/tape/tensor_memory.h"
#include "ml/tape/tensor_shape.h"

namespace parasol {

// Operations as data: a kind from a table, attributes that are plain numbers,
// inputs. All that a tape records can so be read, and given to another back end
// than the kernels of the CPU.

// The attributes of all kinds; each kind reads its own. Axes count from 0, and
// are in range, when an operation is made.
struct OperationAttributes {
  TensorShape shape = {};         // shape of the result
  IntList axes = {};              // axes that are reduced; a permutation
  IntList begin = {};             // first places of a slice
  int64_t axis = 0;               // axis of concat
  int64_t count = 0;              // number of segments, classes or draws
  float low = 0;                  // limit below; an exponent
  float high = 0;                 // limit above
  bool keep_dims = false;         // axes stay, with size 1
  bool transpose_a = false;       // operand of matmul
  bool transpose_b = false;       // operand of matmul
  DType dtype = DType::kFloat32;  // result of cast
  RandomKey key = {};             // key of draws
};

// The operands of an operation, which are no errors.
struct OperationCall {
  absl::Span<const Tensor> inputs;
  const OperationAttributes& attributes;

  const TensorShape& shape(int i) const { return inputs[i].shape(); }
  const float* floats(int i) const { return TensorAccess::Floats(inputs[i]); }
  const int64_t* ints(int i) const { return TensorAccess::Ints(inputs[i]); }
};

class GradientCall;

// One kind of operation: all that differs between kinds. A kind is a constant;
// TapeOperationKinds() lists them.
struct TapeOperationKind {
  absl::string_view name;

  // Returns the type of the result.
  //   InvalidArgument  the operands don't fit: says which ones and why; the
  //                    kind's name is put in front.
  absl::StatusOr<TensorType> (*type)(const OperationCall& call) = nullptr;

  // Writes the result on the CPU. Null: the result is input 0 in another shape.
  // Errors: an operand has a value that it can't have.
  absl::Status (*cpu)(const OperationCall& call,
                      const NewTensor& result) = nullptr;

  // Gives gradients by the inputs, computed by operations, so that these have
  // gradients too. Null: the result doesn't depend smoothly on any input.
  void (*gradient)(GradientCall& call) = nullptr;

  // Values that `gradient` reads. A tape keeps the shapes of all others only.
  bool gradient_reads_inputs = true;
  bool gradient_reads_output = true;
};

// Returns all kinds, each once.
absl::Span<const TapeOperationKind* const> TapeOperationKinds();

// Computes an operation, and records it on the tapes of this thread that know
// an input. An input that is an error is the result.
Tensor Apply(const TapeOperationKind& kind, absl::Span<const Tensor> inputs,
             const OperationAttributes& attributes = {});

struct CustomOperation;  // ml/tape/custom_operation.h

using TensorList = absl::InlinedVector<Tensor, 2, TensorAllocator<Tensor>>;

// An operation as a tape keeps it.
struct TapeOperation {
  absl::string_view name() const;

  const TapeOperationKind* kind = nullptr;  // null: a custom one
  std::shared_ptr<const CustomOperation> custom;
  OperationAttributes attributes;
  TensorList inputs;
  TensorList outputs;
};

// Gradient of one operation: what a rule gets and gives.
class GradientCall {
 public:
  using Gradients = absl::InlinedVector<std::optional<Tensor>, 2,
                                        TensorAllocator<std::optional<Tensor>>>;

  // `wanted` has a value for each input, and `d_outputs` for each output.
  GradientCall(const TapeOperation& operation,
               absl::Span<const Tensor> d_outputs,
               absl::Span<const bool> wanted)
      : operation_(operation),
        d_outputs_(d_outputs),
        wanted_(wanted),
        gradients_(wanted.size()) {}

  const OperationAttributes& attributes() const {
    return operation_.attributes;
  }
  int inputs() const { return static_cast<int>(wanted_.size()); }
  const Tensor& input(int i) const { return operation_.inputs[i]; }
  const Tensor& output() const { return operation_.outputs[0]; }
  // The gradient of the targets by output().
  const Tensor& d_output() const { return d_outputs_[0]; }
  absl::Span<const Tensor> d_outputs() const { return d_outputs_; }
  // Returns true if the gradient by input i is asked for; others are not to be
  // computed.
  bool wants(int i) const { return wanted_[i]; }
  absl::Span<const bool> wanted() const { return wanted_; }
  // Gives the gradient by input i, of its shape.
  void Give(int i, Tensor gradient) { gradients_[i] = std::move(gradient); }

  Gradients& gradients() { return gradients_; }

 private:
  const TapeOperation& operation_;
  const absl::Span<const Tensor> d_outputs_;
  const absl::Span<const bool> wanted_;
  Gradients gradients_;
};

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_OPERATION_H_
