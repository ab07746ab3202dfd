#include "ml/tape/reduce.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/arrange.h"
#include "ml/tape/broadcast.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

// Axes of a tensor as flags.
using Reduced = std::array<bool, IntList::kMost>;

Reduced FlagsOf(const IntList& axes) {
  Reduced reduced = {};
  for (const int64_t axis : axes.values()) reduced[axis] = true;
  return reduced;
}

// Returns the shape with size 1 for each reduced axis.
TensorShape KeptShape(const TensorShape& shape, const IntList& axes) {
  TensorShape kept = shape;
  for (const int64_t axis : axes.values()) kept[axis] = 1;
  return kept;
}

absl::StatusOr<TensorType> ReducedType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  const Reduced reduced = FlagsOf(call.attributes.axes);
  TensorShape shape;
  for (int i = 0; i < call.shape(0).rank(); ++i) {
    if (!reduced[i]) {
      shape.Append(call.shape(0)[i]);
    } else if (call.attributes.keep_dims) {
      shape.Append(1);
    }
  }
  return TensorType{DType::kFloat32, shape};
}

absl::StatusOr<TensorType> ExtremeType(const OperationCall& call) {
  for (const int64_t axis : call.attributes.axes.values()) {
    if (call.shape(0)[axis] != 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", call.shape(0).ToString(),
                     " has no elements along axis ", axis));
  }
  return ReducedType(call);
}

// The elements in between are added up in double: a sum is then as exact as
// float32 can say it. Four sums at a time, for each waits for the last.
float SumOf(const float* x, int64_t size) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= size; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += x[i + k];
  }
  for (; i < size; ++i) sums[0] += x[i];
  return static_cast<float>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// Reduces the middle one of three axes [outer, size, inner] to the sum.
struct Summing {
  static void Run(const float* x, int64_t outer, int64_t size, int64_t inner,
                  float* y) {
    if (inner == 1) {
      for (int64_t o = 0; o < outer; ++o) y[o] = SumOf(x + o * size, size);
      return;
    }
    constexpr int64_t kColumns = 64;
    for (int64_t o = 0; o < outer; ++o, x += size * inner, y += inner) {
      for (int64_t first = 0; first < inner; first += kColumns) {
        const int64_t columns = std::min(kColumns, inner - first);
        double sums[kColumns] = {};
        for (int64_t i = 0; i < size; ++i) {
          const float* const row = x + i * inner + first;
          for (int64_t c = 0; c < columns; ++c) sums[c] += row[c];
        }
        for (int64_t c = 0; c < columns; ++c) {
          y[first + c] = static_cast<float>(sums[c]);
        }
      }
    }
  }
};

// Takes the element that is beyond the others; NaN if there is one.
template <bool largest>
struct TakingExtreme {
  static float Of(float a, float b) {
    return (largest ? b > a : b < a) || b != b ? b : a;
  }
  static void Run(const float* x, int64_t outer, int64_t size, int64_t inner,
                  float* y) {
    for (int64_t o = 0; o < outer; ++o, x += size * inner, y += inner) {
      std::copy_n(x, inner, y);
      for (int64_t i = 1; i < size; ++i) {
        const float* const row = x + i * inner;
        for (int64_t c = 0; c < inner; ++c) y[c] = Of(y[c], row[c]);
      }
    }
  }
};

// Reduces one run of neighbouring axes after the other, the innermost first.
template <typename Reduction>
absl::Status ReduceCpu(const OperationCall& call, const NewTensor& result) {
  const TensorShape& shape = call.shape(0);
  const Reduced reduced = FlagsOf(call.attributes.axes);
  std::vector<float, TensorAllocator<float>> values, before;
  const float* from = call.floats(0);
  int64_t left = shape.size(), inner = 1;
  if (result.tensor.size() == 0) return absl::OkStatus();
  for (int axis = shape.rank() - 1; axis >= 0;) {
    if (!reduced[axis]) {
      inner *= shape[axis--];
      continue;
    }
    int64_t size = 1;
    for (; axis >= 0 && reduced[axis]; --axis) size *= shape[axis];
    int64_t outer = 1;
    for (int i = axis; i >= 0; --i) outer *= shape[i];
    values.swap(before);
    values.resize(outer * inner);
    Reduction::Run(from, outer, size, inner, values.data());
    from = values.data();
    left = outer * inner;
  }
  std::copy_n(from, left, result.floats().data());
  return absl::OkStatus();
}

void SumGradient(GradientCall& call) {
  const TensorShape& shape = call.input(0).shape();
  call.Give(0, BroadcastTo(Reshape(call.d_output(),
                                   KeptShape(shape, call.attributes().axes)),
                           shape));
}

// All elements that are the extreme share its gradient.
void ExtremeGradient(GradientCall& call) {
  const IntList& axes = call.attributes().axes;
  const TensorShape kept = KeptShape(call.input(0).shape(), axes);
  const Tensor chosen = Equal(call.input(0), Reshape(call.output(), kept));
  const Tensor number =
      ReduceSum(chosen, Axes(axes.values()), {.keep_dims = true});
  call.Give(0, chosen * (Reshape(call.d_output(), kept) / number));
}

absl::StatusOr<TensorType> ArgMaxType(const OperationCall& call) {
  ASSIGN_OR_RETURN(TensorType type, ExtremeType(call));
  type.dtype = DType::kInt64;
  return type;
}

absl::Status ArgMaxCpu(const OperationCall& call, const NewTensor& result) {
  const TensorShape& shape = call.shape(0);
  const int axis = static_cast<int>(call.attributes.axes[0]);
  const int64_t size = shape[axis];
  int64_t inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  int64_t* const y = result.ints().data();
  for (int64_t i = 0; i < result.tensor.size(); ++i) {
    const float* const x =
        call.floats(0) + i / inner * size * inner + i % inner;
    int64_t best = 0;
    for (int64_t k = 1; k < size; ++k) {
      if (x[k * inner] > x[best * inner]) best = k;
    }
    y[i] = best;
  }
  return absl::OkStatus();
}

absl::StatusOr<IntList> PlacesOf(const Axes& axes, int rank) {
  IntList places;
  if (axes.is_all()) {
    for (int i = 0; i < rank; ++i) places.Append(i);
    return places;
  }
  Reduced seen = {};
  for (const int64_t axis : axes.list().values()) {
    ASSIGN_OR_RETURN(const int place, AxisOf(axis, rank));
    if (seen[place]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "axis ", axis, " stands twice in the axes ", axes.list().ToString()));
    }
    seen[place] = true;
    places.Append(place);
  }
  return places;
}

Tensor Reduce(const TapeOperationKind& kind, const Tensor& x, const Axes& axes,
              const ReduceOptions& options) {
  if (!x.status().ok()) return x;
  const absl::StatusOr<IntList> places = PlacesOf(axes, x.rank());
  if (!places.ok()) {
    return Tensor::Error(absl::InvalidArgumentError(
        absl::StrCat(kind.name, ": ", places.status().message())));
  }
  return Apply(kind, {x}, {.axes = *places, .keep_dims = options.keep_dims});
}

}  // namespace

const TapeOperationKind kReduceSum = {.name = "reduce_sum",
                                      .type = ReducedType,
                                      .cpu = ReduceCpu<Summing>,
                                      .gradient = SumGradient,
                                      .gradient_reads_inputs = false,
                                      .gradient_reads_output = false};
const TapeOperationKind kReduceMax = {.name = "reduce_max",
                                      .type = ExtremeType,
                                      .cpu = ReduceCpu<TakingExtreme<true>>,
                                      .gradient = ExtremeGradient};
const TapeOperationKind kReduceMin = {.name = "reduce_min",
                                      .type = ExtremeType,
                                      .cpu = ReduceCpu<TakingExtreme<false>>,
                                      .gradient = ExtremeGradient};
const TapeOperationKind kArgMax = {
    .name = "argmax", .type = ArgMaxType, .cpu = ArgMaxCpu};

Tensor ReduceSum(const Tensor& x, const Axes& axes,
                 const ReduceOptions& options) {
  return Reduce(kReduceSum, x, axes, options);
}

Tensor ReduceMean(const Tensor& x, const Axes& axes,
                  const ReduceOptions& options) {
  const Tensor sum = ReduceSum(x, axes, options);
  if (!sum.status().ok()) return sum;
  int64_t number = 1;
  if (axes.is_all()) {
    number = x.size();
  } else {
    for (const int64_t axis : axes.list().values()) {
      number *= x.shape()[*AxisOf(axis, x.rank())];
    }
  }
  return sum / static_cast<float>(number);
}

Tensor ReduceMax(const Tensor& x, const Axes& axes,
                 const ReduceOptions& options) {
  return Reduce(kReduceMax, x, axes, options);
}

Tensor ReduceMin(const Tensor& x, const Axes& axes,
                 const ReduceOptions& options) {
  return Reduce(kReduceMin, x, axes, options);
}

Tensor Norm(const Tensor& x, const Axes& axes, const ReduceOptions& options) {
  return Sqrt(ReduceSum(Square(x), axes, options));
}

Tensor GlobalNorm(absl::Span<const Tensor> tensors) {
  Tensor sum = 0;
  for (const Tensor& x : tensors) sum = sum + ReduceSum(Square(x));
  return Sqrt(sum);
}

Tensor ArgMax(const Tensor& x, int axis) {
  return Reduce(kArgMax, x, axis, {});
}

}  // namespace parasol
