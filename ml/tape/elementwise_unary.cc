#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/vector_math.h"
#include "ml/tape/broadcast.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/vector_loops.h"

namespace parasol {
namespace {

template <typename F>
absl::Status UnaryCpu(const OperationCall& call, const NewTensor& result) {
  vector_loops::Unary(F(), call.floats(0), result.tensor.size(),
                      result.floats().data());
  return absl::OkStatus();
}

// A function of the library for each element.
template <float (*f)(float)>
absl::Status LibraryCpu(const OperationCall& call, const NewTensor& result) {
  const float* const x = call.floats(0);
  std::transform(x, x + result.tensor.size(), result.floats().data(), f);
  return absl::OkStatus();
}

struct NegateElement {
  PARASOL_ELEMENT float operator()(float x) const { return -x; }
};
struct SquareElement {
  PARASOL_ELEMENT float operator()(float x) const { return x * x; }
};
struct AbsElement {
  PARASOL_ELEMENT float operator()(float x) const { return std::fabs(x); }
};
struct SignElement {
  PARASOL_ELEMENT float operator()(float x) const {
    return x > 0 ? 1.f : x < 0 ? -1.f : x;  // NaN stays
  }
};
struct TanhElement {
  PARASOL_ELEMENT float operator()(float x) const {
    return vector_math::Tanh(x);
  }
};
struct SigmoidElement {
  PARASOL_ELEMENT float operator()(float x) const {
    return vector_math::Sigmoid(x);
  }
};
struct ReluElement {
  PARASOL_ELEMENT float operator()(float x) const { return x < 0 ? 0 : x; }
};

float ExpElement(float x) { return std::exp(x); }
float LogElement(float x) { return std::log(x); }
float LogOnePlusElement(float x) { return std::log1p(x); }
float SqrtElement(float x) { return std::sqrt(x); }
float SoftplusElement(float x) {
  return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x)));
}

absl::Status PowerCpu(const OperationCall& call, const NewTensor& result) {
  const float exponent = call.attributes.low;
  const float* const x = call.floats(0);
  std::transform(x, x + result.tensor.size(), result.floats().data(),
                 [exponent](float f) { return std::pow(f, exponent); });
  return absl::OkStatus();
}

struct ClipElement {
  float low, high;
  PARASOL_ELEMENT float operator()(float x) const {
    return x < low ? low : x > high ? high : x;
  }
};

absl::Status ClipCpu(const OperationCall& call, const NewTensor& result) {
  vector_loops::Unary(ClipElement{call.attributes.low, call.attributes.high},
                      call.floats(0), result.tensor.size(),
                      result.floats().data());
  return absl::OkStatus();
}

absl::StatusOr<TensorType> ClipType(const OperationCall& call) {
  if (call.attributes.low <= call.attributes.high) return TypeOfInput(call);
  return absl::InvalidArgumentError(
      absl::StrCat("the limit below, ", call.attributes.low,
                   ", is not below the limit above, ", call.attributes.high));
}

absl::StatusOr<TensorType> SelectType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  for (int i = 1; i < 3; ++i) {
    if (call.shape(i) == call.shape(0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("shapes ", call.shape(0).ToString(), " and ",
                     call.shape(i).ToString(), " differ"));
  }
  return TensorType{DType::kFloat32, call.shape(0)};
}

absl::Status SelectCpu(const OperationCall& call, const NewTensor& result) {
  const float* const condition = call.floats(0);
  const float* const a = call.floats(1);
  const float* const b = call.floats(2);
  float* const y = result.floats().data();
  const int64_t size = result.tensor.size();
#pragma GCC ivdep
  for (int64_t i = 0; i < size; ++i) y[i] = condition[i] != 0 ? a[i] : b[i];
  return absl::OkStatus();
}

absl::StatusOr<TensorType> CastType(const OperationCall& call) {
  return TensorType{call.attributes.dtype, call.shape(0)};
}

// Numbers that no int64 is near to become the nearest; NaN becomes 0.
int64_t IntOf(float x) {
  constexpr float kLimit = 9223372036854775808.f;
  if (x != x) return 0;
  if (x >= kLimit) return INT64_MAX;
  return x < -kLimit ? INT64_MIN : static_cast<int64_t>(x);
}

absl::Status CastCpu(const OperationCall& call, const NewTensor& result) {
  const int64_t size = result.tensor.size();
  if (call.attributes.dtype == DType::kFloat32) {
    const int64_t* const x = call.ints(0);
    std::copy(x, x + size, result.floats().data());
  } else {
    const float* const x = call.floats(0);
    std::transform(x, x + size, result.ints().data(), IntOf);
  }
  return absl::OkStatus();
}

void NegateGradient(GradientCall& call) { call.Give(0, -call.d_output()); }
void ExpGradient(GradientCall& call) {
  call.Give(0, call.d_output() * call.output());
}
void LogGradient(GradientCall& call) {
  call.Give(0, call.d_output() / call.input(0));
}
void LogOnePlusGradient(GradientCall& call) {
  call.Give(0, call.d_output() / (1 + call.input(0)));
}
void SqrtGradient(GradientCall& call) {
  call.Give(0, call.d_output() * .5f / call.output());
}
void SquareGradient(GradientCall& call) {
  call.Give(0, call.d_output() * (2 * call.input(0)));
}
void PowerGradient(GradientCall& call) {
  const float exponent = call.attributes().low;
  if (exponent == 0) return call.Give(0, Zeros(call.input(0).shape()));
  call.Give(0,
            call.d_output() * (exponent * Power(call.input(0), exponent - 1)));
}
void AbsGradient(GradientCall& call) {
  call.Give(0, call.d_output() * Sign(call.input(0)));
}
void TanhGradient(GradientCall& call) {
  call.Give(0, call.d_output() * (1 - Square(call.output())));
}
void SigmoidGradient(GradientCall& call) {
  call.Give(0, call.d_output() * (call.output() * (1 - call.output())));
}
void ReluGradient(GradientCall& call) {
  call.Give(0, Where(Greater(call.output(), 0), call.d_output(), 0));
}
void SoftplusGradient(GradientCall& call) {
  call.Give(0, call.d_output() * Sigmoid(call.input(0)));
}
void ClipGradient(GradientCall& call) {
  const Tensor inside = GreaterEqual(call.input(0), call.attributes().low) *
                        LessEqual(call.input(0), call.attributes().high);
  call.Give(0, Where(inside, call.d_output(), 0));
}
void SelectGradient(GradientCall& call) {
  if (call.wants(1)) call.Give(1, Where(call.input(0), call.d_output(), 0));
  if (call.wants(2)) call.Give(2, Where(call.input(0), 0, call.d_output()));
}

// Kinds whose rules read the input, or the output, only.
constexpr TapeOperationKind OfInput(
    absl::string_view name, decltype(TapeOperationKind::cpu) cpu,
    decltype(TapeOperationKind::gradient) gradient) {
  return {.name = name,
          .type = TypeOfInput,
          .cpu = cpu,
          .gradient = gradient,
          .gradient_reads_output = false};
}
constexpr TapeOperationKind OfOutput(
    absl::string_view name, decltype(TapeOperationKind::cpu) cpu,
    decltype(TapeOperationKind::gradient) gradient) {
  return {.name = name,
          .type = TypeOfInput,
          .cpu = cpu,
          .gradient = gradient,
          .gradient_reads_inputs = false};
}

}  // namespace

const TapeOperationKind kNegate = {.name = "negate",
                                   .type = TypeOfInput,
                                   .cpu = UnaryCpu<NegateElement>,
                                   .gradient = NegateGradient,
                                   .gradient_reads_inputs = false,
                                   .gradient_reads_output = false};
const TapeOperationKind kExp =
    OfOutput("exp", LibraryCpu<ExpElement>, ExpGradient);
const TapeOperationKind kLog =
    OfInput("log", LibraryCpu<LogElement>, LogGradient);
const TapeOperationKind kLog1p =
    OfInput("log1p", LibraryCpu<LogOnePlusElement>, LogOnePlusGradient);
const TapeOperationKind kSqrt =
    OfOutput("sqrt", LibraryCpu<SqrtElement>, SqrtGradient);
const TapeOperationKind kSquare =
    OfInput("square", UnaryCpu<SquareElement>, SquareGradient);
const TapeOperationKind kPower = OfInput("power", PowerCpu, PowerGradient);
const TapeOperationKind kAbs =
    OfInput("abs", UnaryCpu<AbsElement>, AbsGradient);
const TapeOperationKind kSign = {
    .name = "sign", .type = TypeOfInput, .cpu = UnaryCpu<SignElement>};
const TapeOperationKind kTanh =
    OfOutput("tanh", UnaryCpu<TanhElement>, TanhGradient);
const TapeOperationKind kSigmoid =
    OfOutput("sigmoid", UnaryCpu<SigmoidElement>, SigmoidGradient);
const TapeOperationKind kRelu =
    OfOutput("relu", UnaryCpu<ReluElement>, ReluGradient);
const TapeOperationKind kSoftplus =
    OfInput("softplus", LibraryCpu<SoftplusElement>, SoftplusGradient);
const TapeOperationKind kClipByValue = {.name = "clip_by_value",
                                        .type = ClipType,
                                        .cpu = ClipCpu,
                                        .gradient = ClipGradient,
                                        .gradient_reads_output = false};
const TapeOperationKind kSelect = {.name = "where",
                                   .type = SelectType,
                                   .cpu = SelectCpu,
                                   .gradient = SelectGradient,
                                   .gradient_reads_output = false};
const TapeOperationKind kCast = {
    .name = "cast", .type = CastType, .cpu = CastCpu};

Tensor Negate(const Tensor& x) { return Apply(kNegate, {x}); }
Tensor Exp(const Tensor& x) { return Apply(kExp, {x}); }
Tensor Log(const Tensor& x) { return Apply(kLog, {x}); }
Tensor Log1p(const Tensor& x) { return Apply(kLog1p, {x}); }
Tensor Sqrt(const Tensor& x) { return Apply(kSqrt, {x}); }
Tensor Square(const Tensor& x) { return Apply(kSquare, {x}); }
Tensor Power(const Tensor& x, float exponent) {
  return Apply(kPower, {x}, {.low = exponent});
}
Tensor Abs(const Tensor& x) { return Apply(kAbs, {x}); }
Tensor Sign(const Tensor& x) { return Apply(kSign, {x}); }
Tensor Tanh(const Tensor& x) { return Apply(kTanh, {x}); }
Tensor Sigmoid(const Tensor& x) { return Apply(kSigmoid, {x}); }
Tensor Relu(const Tensor& x) { return Apply(kRelu, {x}); }
Tensor Softplus(const Tensor& x) { return Apply(kSoftplus, {x}); }
Tensor ClipByValue(const Tensor& x, float low, float high) {
  return Apply(kClipByValue, {x}, {.low = low, .high = high});
}

Tensor Cast(const Tensor& x, DType dtype) {
  if (x.status().ok() && x.dtype() == dtype) return x;
  return Apply(kCast, {x}, {.dtype = dtype});
}

Tensor Where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  for (const Tensor* const x : {&condition, &a, &b}) {
    if (!x->status().ok()) return *x;
  }
  absl::StatusOr<TensorShape> shape =
      BroadcastShape(condition.shape(), a.shape());
  if (shape.ok()) shape = BroadcastShape(*shape, b.shape());
  if (!shape.ok()) {
    return Tensor::Error(absl::InvalidArgumentError(
        absl::StrCat("where: ", shape.status().message())));
  }
  return Apply(kSelect, {BroadcastTo(Cast(condition, DType::kFloat32), *shape),
                         BroadcastTo(a, *shape), BroadcastTo(b, *shape)});
}

}  // namespace parasol
