#include <cstdint>

#include "base/status_macros.h"
#include "ml/tape/broadcast.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/vector_loops.h"

namespace parasol {
namespace {

absl::StatusOr<TensorType> BinaryType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  ASSIGN_OR_RETURN(const TensorShape shape,
                   BroadcastShape(call.shape(0), call.shape(1)));
  return TensorType{DType::kFloat32, shape};
}

absl::StatusOr<TensorType> ComparisonType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckDType(call, 1, call.inputs[0].dtype()));
  ASSIGN_OR_RETURN(const TensorShape shape,
                   BroadcastShape(call.shape(0), call.shape(1)));
  return TensorType{DType::kFloat32, shape};
}

template <typename F, typename T>
void ForEachPair(const F& f, const OperationCall& call, const T* a, const T* b,
                 const NewTensor& result) {
  float* const y = result.floats().data();
  ForEachBroadcastRow(result.tensor.shape(), call.shape(0), call.shape(1),
                      [&](int64_t out, int64_t of_a, int64_t of_b, int64_t size,
                          int64_t a_step, int64_t b_step) {
                        vector_loops::Binary(f, a + of_a, a_step, b + of_b,
                                             b_step, size, y + out);
                      });
}

template <typename F>
absl::Status BinaryCpu(const OperationCall& call, const NewTensor& result) {
  ForEachPair(F(), call, call.floats(0), call.floats(1), result);
  return absl::OkStatus();
}

template <typename F>
absl::Status ComparisonCpu(const OperationCall& call, const NewTensor& result) {
  if (call.inputs[0].dtype() == DType::kFloat32)
    return BinaryCpu<F>(call, result);
  ForEachPair(F(), call, call.ints(0), call.ints(1), result);
  return absl::OkStatus();
}

struct AddElements {
  PARASOL_ELEMENT float operator()(float a, float b) const { return a + b; }
};
struct SubtractElements {
  PARASOL_ELEMENT float operator()(float a, float b) const { return a - b; }
};
struct MultiplyElements {
  PARASOL_ELEMENT float operator()(float a, float b) const { return a * b; }
};
struct DivideElements {
  PARASOL_ELEMENT float operator()(float a, float b) const { return a / b; }
};
// NaN if either is.
struct LargerElement {
  PARASOL_ELEMENT float operator()(float a, float b) const {
    return a > b || a != a ? a : b;
  }
};
struct SmallerElement {
  PARASOL_ELEMENT float operator()(float a, float b) const {
    return a < b || a != a ? a : b;
  }
};
struct AreEqual {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a == b ? 1.f : 0.f;
  }
};
struct AreNotEqual {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a != b ? 1.f : 0.f;
  }
};
struct IsGreater {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a > b ? 1.f : 0.f;
  }
};
struct IsGreaterEqual {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a >= b ? 1.f : 0.f;
  }
};
struct IsLess {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a < b ? 1.f : 0.f;
  }
};
struct IsLessEqual {
  template <typename T>
  PARASOL_ELEMENT float operator()(T a, T b) const {
    return a <= b ? 1.f : 0.f;
  }
};

// Gives the gradient by operand i of what has the shape of the result.
void GiveSummed(GradientCall& call, int i, const Tensor& gradient) {
  call.Give(i, SumTo(gradient, call.input(i).shape()));
}

void AddGradient(GradientCall& call) {
  for (int i = 0; i < 2; ++i) {
    if (call.wants(i)) GiveSummed(call, i, call.d_output());
  }
}

void SubtractGradient(GradientCall& call) {
  if (call.wants(0)) GiveSummed(call, 0, call.d_output());
  if (call.wants(1)) {
    call.Give(1, Negate(SumTo(call.d_output(), call.input(1).shape())));
  }
}

void MultiplyGradient(GradientCall& call) {
  for (int i = 0; i < 2; ++i) {
    if (call.wants(i)) GiveSummed(call, i, call.d_output() * call.input(1 - i));
  }
}

void DivideGradient(GradientCall& call) {
  const Tensor quotient = call.d_output() / call.input(1);
  if (call.wants(0)) GiveSummed(call, 0, quotient);
  if (call.wants(1)) {
    GiveSummed(call, 1, -(quotient * (call.input(0) / call.input(1))));
  }
}

// Gives each operand the gradient where `first` says that it was taken.
void GiveTaken(GradientCall& call, const Tensor& first) {
  if (call.wants(0)) GiveSummed(call, 0, Where(first, call.d_output(), 0));
  if (call.wants(1)) GiveSummed(call, 1, Where(first, 0, call.d_output()));
}

void MaximumGradient(GradientCall& call) {
  GiveTaken(call, GreaterEqual(call.input(0), call.input(1)));
}

void MinimumGradient(GradientCall& call) {
  GiveTaken(call, LessEqual(call.input(0), call.input(1)));
}

template <typename F>
constexpr TapeOperationKind Comparison(absl::string_view name) {
  return {.name = name, .type = ComparisonType, .cpu = ComparisonCpu<F>};
}

}  // namespace

const TapeOperationKind kAdd = {.name = "add",
                                .type = BinaryType,
                                .cpu = BinaryCpu<AddElements>,
                                .gradient = AddGradient,
                                .gradient_reads_inputs = false,
                                .gradient_reads_output = false};
const TapeOperationKind kSubtract = {.name = "subtract",
                                     .type = BinaryType,
                                     .cpu = BinaryCpu<SubtractElements>,
                                     .gradient = SubtractGradient,
                                     .gradient_reads_inputs = false,
                                     .gradient_reads_output = false};
const TapeOperationKind kMultiply = {.name = "multiply",
                                     .type = BinaryType,
                                     .cpu = BinaryCpu<MultiplyElements>,
                                     .gradient = MultiplyGradient,
                                     .gradient_reads_output = false};
const TapeOperationKind kDivide = {.name = "divide",
                                   .type = BinaryType,
                                   .cpu = BinaryCpu<DivideElements>,
                                   .gradient = DivideGradient,
                                   .gradient_reads_output = false};
const TapeOperationKind kMaximum = {.name = "maximum",
                                    .type = BinaryType,
                                    .cpu = BinaryCpu<LargerElement>,
                                    .gradient = MaximumGradient,
                                    .gradient_reads_output = false};
const TapeOperationKind kMinimum = {.name = "minimum",
                                    .type = BinaryType,
                                    .cpu = BinaryCpu<SmallerElement>,
                                    .gradient = MinimumGradient,
                                    .gradient_reads_output = false};
const TapeOperationKind kEqual = Comparison<AreEqual>("equal");
const TapeOperationKind kNotEqual = Comparison<AreNotEqual>("not_equal");
const TapeOperationKind kGreater = Comparison<IsGreater>("greater");
const TapeOperationKind kGreaterEqual =
    Comparison<IsGreaterEqual>("greater_equal");
const TapeOperationKind kLess = Comparison<IsLess>("less");
const TapeOperationKind kLessEqual = Comparison<IsLessEqual>("less_equal");

Tensor Add(const Tensor& a, const Tensor& b) { return Apply(kAdd, {a, b}); }
Tensor Subtract(const Tensor& a, const Tensor& b) {
  return Apply(kSubtract, {a, b});
}
Tensor Multiply(const Tensor& a, const Tensor& b) {
  return Apply(kMultiply, {a, b});
}
Tensor Divide(const Tensor& a, const Tensor& b) {
  return Apply(kDivide, {a, b});
}
Tensor Maximum(const Tensor& a, const Tensor& b) {
  return Apply(kMaximum, {a, b});
}
Tensor Minimum(const Tensor& a, const Tensor& b) {
  return Apply(kMinimum, {a, b});
}
Tensor Equal(const Tensor& a, const Tensor& b) { return Apply(kEqual, {a, b}); }
Tensor NotEqual(const Tensor& a, const Tensor& b) {
  return Apply(kNotEqual, {a, b});
}
Tensor Greater(const Tensor& a, const Tensor& b) {
  return Apply(kGreater, {a, b});
}
Tensor GreaterEqual(const Tensor& a, const Tensor& b) {
  return Apply(kGreaterEqual, {a, b});
}
Tensor Less(const Tensor& a, const Tensor& b) { return Apply(kLess, {a, b}); }
Tensor LessEqual(const Tensor& a, const Tensor& b) {
  return Apply(kLessEqual, {a, b});
}

}  // namespace parasol
