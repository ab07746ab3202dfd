#include "ml/tape/arrange.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

// Calls body(from, to), pointers to the elements of input 0 and of the result,
// for the dtype that both have.
template <typename Body>
void WithElements(const OperationCall& call, const NewTensor& result,
                  const Body& body) {
  if (result.tensor.dtype() == DType::kFloat32) {
    body(call.floats(0), result.floats().data());
  } else {
    body(call.ints(0), result.ints().data());
  }
}

absl::StatusOr<TensorType> ReshapeType(const OperationCall& call) {
  const TensorShape& shape = call.attributes.shape;
  RETURN_IF_ERROR(shape.Check());
  if (shape.size() == call.inputs[0].size()) {
    return TensorType{call.inputs[0].dtype(), shape};
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "shape ", call.shape(0).ToString(), " has ", call.inputs[0].size(),
      " elements, ", shape.ToString(), " has ", shape.size()));
}

void ReshapeGradient(GradientCall& call) {
  call.Give(0, Reshape(call.d_output(), call.input(0).shape()));
}

absl::StatusOr<TensorType> TransposeType(const OperationCall& call) {
  const IntList& order = call.attributes.axes;
  const TensorShape& shape = call.shape(0);
  TensorShape out;
  std::array<bool, IntList::kMost> seen = {};
  bool fits = order.size() == shape.rank() && !order.is_too_long();
  for (int i = 0; fits && i < order.size(); ++i) {
    fits = order[i] >= 0 && order[i] < shape.rank() && !seen[order[i]];
    if (!fits) break;
    seen[order[i]] = true;
    out.Append(shape[order[i]]);
  }
  if (fits) return TensorType{call.inputs[0].dtype(), out};
  return absl::InvalidArgumentError(
      absl::StrCat(order.ToString(), " is not an order of the axes of shape ",
                   shape.ToString()));
}

template <typename T>
void TransposeElements(const T* from, const TensorShape& shape,
                       const IntList& order, T* to) {
  const int rank = shape.rank();
  std::array<int64_t, IntList::kMost> steps = {}, sizes = {}, index = {};
  std::array<int64_t, IntList::kMost> own = {};
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    own[i] = step;
    step *= shape[i];
  }
  for (int i = 0; i < rank; ++i) {
    sizes[i] = shape[order[i]];
    steps[i] = own[order[i]];
  }
  const int64_t total = shape.size();
  const int inner = rank - 1;
  int64_t at = 0;
  for (int64_t place = 0; place < total; place += sizes[inner]) {
    for (int64_t i = 0; i < sizes[inner]; ++i) {
      to[place + i] = from[at + i * steps[inner]];
    }
    for (int axis = inner - 1; axis >= 0; --axis) {
      at += steps[axis];
      if (++index[axis] < sizes[axis]) break;
      at -= steps[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
}

absl::Status TransposeCpu(const OperationCall& call, const NewTensor& result) {
  WithElements(call, result, [&](const auto* from, auto* to) {
    if (call.shape(0).rank() == 0) {
      *to = *from;
    } else {
      TransposeElements(from, call.shape(0), call.attributes.axes, to);
    }
  });
  return absl::OkStatus();
}

void TransposeGradient(GradientCall& call) {
  const IntList& order = call.attributes().axes;
  IntList inverse = order;
  for (int i = 0; i < order.size(); ++i) inverse[order[i]] = i;
  call.Give(0, TransposeAxes(call.d_output(), inverse));
}

Tensor Fault(absl::string_view what, const absl::Status& status) {
  return Tensor::Error(
      absl::Status(status.code(), absl::StrCat(what, ": ", status.message())));
}

// Returns `shape` with the size that stands as -1 filled in.
absl::StatusOr<TensorShape> FilledIn(const TensorShape& shape, int64_t size) {
  TensorShape filled = shape;
  int unknown = -1;
  int64_t others = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) {
      others *= shape[i];
      continue;
    }
    if (unknown >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", shape.ToString(), " has two sizes of -1"));
    }
    unknown = i;
  }
  if (unknown < 0) return filled;
  if (others <= 0 || size % others != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(size, " elements don't fit in shape ", shape.ToString()));
  }
  filled[unknown] = size / others;
  return filled;
}

Tensor WithoutAxis(const Tensor& x, int axis) {
  TensorShape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.Append(x.shape()[i]);
  }
  return Reshape(x, shape);
}

}  // namespace

const TapeOperationKind kReshape = {.name = "reshape",
                                    .type = ReshapeType,
                                    .gradient = ReshapeGradient,
                                    .gradient_reads_inputs = false,
                                    .gradient_reads_output = false};
const TapeOperationKind kTranspose = {.name = "transpose",
                                      .type = TransposeType,
                                      .cpu = TransposeCpu,
                                      .gradient = TransposeGradient,
                                      .gradient_reads_inputs = false,
                                      .gradient_reads_output = false};

Tensor Reshape(const Tensor& x, const TensorShape& shape) {
  if (!x.status().ok() || x.shape() == shape) return x;
  const absl::StatusOr<TensorShape> filled = FilledIn(shape, x.size());
  if (!filled.ok()) return Fault("reshape", filled.status());
  return Apply(kReshape, {x}, {.shape = *filled});
}

Tensor ExpandDims(const Tensor& x, int axis) {
  if (!x.status().ok()) return x;
  const absl::StatusOr<int> place = AxisOf(axis, x.rank() + 1);
  if (!place.ok()) return Fault("expand_dims", place.status());
  if (x.rank() == IntList::kMost) {
    return Fault("expand_dims",
                 absl::InvalidArgumentError(absl::StrCat(
                     "shape ", x.shape().ToString(), " has 8 axes already")));
  }
  TensorShape shape;
  for (int i = 0; i <= x.rank(); ++i) {
    shape.Append(i < *place    ? x.shape()[i]
                 : i == *place ? 1
                               : x.shape()[i - 1]);
  }
  return Reshape(x, shape);
}

Tensor Squeeze(const Tensor& x) {
  if (!x.status().ok()) return x;
  TensorShape shape;
  for (const int64_t size : x.shape().sizes().values()) {
    if (size != 1) shape.Append(size);
  }
  return Reshape(x, shape);
}

Tensor Squeeze(const Tensor& x, int axis) {
  if (!x.status().ok()) return x;
  const absl::StatusOr<int> place = AxisOf(axis, x.rank());
  if (!place.ok()) return Fault("squeeze", place.status());
  if (x.shape()[*place] == 1) return WithoutAxis(x, *place);
  return Fault("squeeze", absl::InvalidArgumentError(absl::StrCat(
                              "axis ", axis, " of shape ", x.shape().ToString(),
                              " has not size 1")));
}

Tensor TransposeAxes(const Tensor& x, const IntList& permutation) {
  if (!x.status().ok()) return x;
  IntList order = permutation;
  if (order.size() == 0) {
    for (int i = x.rank(); i-- > 0;) order.Append(i);
  }
  return Apply(kTranspose, {x}, {.axes = order});
}

}  // namespace parasol
