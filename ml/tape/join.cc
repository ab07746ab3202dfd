// Concat() and Slice() of ml/tape/arrange.h, each with the other's gradient.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/arrange.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

absl::StatusOr<TensorType> ConcatType(const OperationCall& call) {
  const int axis = static_cast<int>(call.attributes.axis);
  TensorShape shape = call.shape(0);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckDType(call, i, call.inputs[0].dtype()));
    TensorShape other = call.shape(i);
    const bool fits = other.rank() == shape.rank();
    if (fits) other[axis] = shape[axis];
    if (!fits || other != shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("shapes ", call.shape(0).ToString(), " and ",
                       call.shape(i).ToString(), " differ beside axis ", axis));
    }
    shape[axis] += call.shape(i)[axis];
  }
  return TensorType{call.inputs[0].dtype(), shape};
}

// Number of elements of one place of all axes before `axis`.
int64_t RunOf(const TensorShape& shape, int axis) {
  int64_t run = 1;
  for (int i = axis; i < shape.rank(); ++i) run *= shape[i];
  return run;
}

template <typename T>
const T* ElementsOf(const OperationCall& call, int i) {
  return static_cast<const T*>(TensorAccess::Body(call.inputs[i]).data);
}

template <typename T>
void ConcatElements(const OperationCall& call, const TensorShape& shape,
                    T* to) {
  const int axis = static_cast<int>(call.attributes.axis);
  const int64_t run = RunOf(shape, axis);
  if (run == 0) return;
  const int64_t outer = shape.size() / run;
  for (int i = 0; i < static_cast<int>(call.inputs.size()); ++i) {
    const int64_t part = RunOf(call.shape(i), axis);
    const T* from = ElementsOf<T>(call, i);
    for (int64_t o = 0; o < outer; ++o) {
      std::copy_n(from + o * part, part, to + o * run);
    }
    to += part;
  }
}

absl::Status ConcatCpu(const OperationCall& call, const NewTensor& result) {
  const TensorShape& shape = result.tensor.shape();
  if (result.tensor.dtype() == DType::kFloat32) {
    ConcatElements(call, shape, result.floats().data());
  } else {
    ConcatElements(call, shape, result.ints().data());
  }
  return absl::OkStatus();
}

void ConcatGradient(GradientCall& call) {
  const int axis = static_cast<int>(call.attributes().axis);
  IntList begin = call.output().shape().sizes();
  for (int i = 0; i < begin.size(); ++i) begin[i] = 0;
  for (int i = 0; i < call.inputs(); ++i) {
    const TensorShape& shape = call.input(i).shape();
    if (call.wants(i)) {
      call.Give(i, Slice(call.d_output(), begin, shape.sizes()));
    }
    begin[axis] += shape[axis];
  }
}

absl::StatusOr<TensorType> SliceType(const OperationCall& call) {
  const TensorShape& shape = call.shape(0);
  const IntList& begin = call.attributes.begin;
  TensorShape out = call.attributes.shape;
  bool fits = begin.size() == shape.rank() && out.rank() == shape.rank() &&
              !begin.is_too_long() && !out.sizes().is_too_long();
  for (int i = 0; fits && i < shape.rank(); ++i) {
    if (out[i] == -1) out[i] = shape[i] - begin[i];
    fits = begin[i] >= 0 && out[i] >= 0 && begin[i] <= shape[i] &&
           out[i] <= shape[i] - begin[i];
  }
  if (fits) return TensorType{call.inputs[0].dtype(), out};
  return absl::InvalidArgumentError(absl::StrCat(
      "shape ", shape.ToString(), " has no elements from ", begin.ToString(),
      " on of sizes ", call.attributes.shape.ToString()));
}

// Copies a box of sizes `box` between an array of shape `whole`, where it
// begins at `begin`, and an array of its own.
template <bool into_whole, typename T>
void CopyBox(const TensorShape& whole, const IntList& begin,
             const TensorShape& box, const T* from, T* to) {
  const int rank = whole.rank();
  if (rank == 0) {
    *to = *from;
    return;
  }
  if (box.size() == 0) return;
  IntList index = box.sizes();
  for (int i = 0; i < rank; ++i) index[i] = 0;
  const int64_t run = box[rank - 1];
  for (int64_t place = 0; place < box.size(); place += run) {
    int64_t at = 0;
    for (int i = 0; i < rank; ++i) at = at * whole[i] + begin[i] + index[i];
    if constexpr (into_whole) {
      std::copy_n(from + place, run, to + at);
    } else {
      std::copy_n(from + at, run, to + place);
    }
    for (int axis = rank - 2; axis >= 0; --axis) {
      if (++index[axis] < box[axis]) break;
      index[axis] = 0;
    }
  }
}

absl::Status SliceCpu(const OperationCall& call, const NewTensor& result) {
  const IntList& begin = call.attributes.begin;
  const TensorShape& box = result.tensor.shape();
  if (result.tensor.dtype() == DType::kFloat32) {
    CopyBox<false>(call.shape(0), begin, box, call.floats(0),
                   result.floats().data());
  } else {
    CopyBox<false>(call.shape(0), begin, box, call.ints(0),
                   result.ints().data());
  }
  return absl::OkStatus();
}

void SliceGradient(GradientCall& call) {
  call.Give(0, Apply(kPad, {call.d_output()},
                     {.shape = call.input(0).shape(),
                      .begin = call.attributes().begin}));
}

// Zeros of a shape, with input 0 from `begin` on.
absl::StatusOr<TensorType> PadType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  const TensorShape& shape = call.attributes.shape;
  const IntList& begin = call.attributes.begin;
  const TensorShape& box = call.shape(0);
  bool fits = box.rank() == shape.rank() && begin.size() == shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) {
    fits =
        begin[i] >= 0 && begin[i] <= shape[i] && box[i] <= shape[i] - begin[i];
  }
  if (fits) return TensorType{DType::kFloat32, shape};
  return absl::InvalidArgumentError(
      absl::StrCat("shape ", box.ToString(), " from ", begin.ToString(),
                   " on doesn't fit in ", shape.ToString()));
}

absl::Status PadCpu(const OperationCall& call, const NewTensor& result) {
  const absl::Span<float> y = result.floats();
  std::fill(y.begin(), y.end(), 0.f);
  CopyBox<true>(result.tensor.shape(), call.attributes.begin, call.shape(0),
                call.floats(0), y.data());
  return absl::OkStatus();
}

void PadGradient(GradientCall& call) {
  call.Give(0, Slice(call.d_output(), call.attributes().begin,
                     call.input(0).shape().sizes()));
}

}  // namespace

const TapeOperationKind kConcat = {.name = "concat",
                                   .type = ConcatType,
                                   .cpu = ConcatCpu,
                                   .gradient = ConcatGradient,
                                   .gradient_reads_inputs = false,
                                   .gradient_reads_output = false};
const TapeOperationKind kSlice = {.name = "slice",
                                  .type = SliceType,
                                  .cpu = SliceCpu,
                                  .gradient = SliceGradient,
                                  .gradient_reads_inputs = false,
                                  .gradient_reads_output = false};
const TapeOperationKind kPad = {.name = "pad",
                                .type = PadType,
                                .cpu = PadCpu,
                                .gradient = PadGradient,
                                .gradient_reads_inputs = false,
                                .gradient_reads_output = false};

Tensor Concat(absl::Span<const Tensor> tensors, int axis) {
  if (tensors.empty()) {
    return Tensor::Error(absl::InvalidArgumentError("concat: no tensors"));
  }
  if (!tensors[0].status().ok()) return tensors[0];
  const absl::StatusOr<int> place = AxisOf(axis, tensors[0].rank());
  if (!place.ok()) {
    return Tensor::Error(absl::InvalidArgumentError(
        absl::StrCat("concat: ", place.status().message())));
  }
  return Apply(kConcat, tensors, {.axis = *place});
}

Tensor Slice(const Tensor& x, const IntList& begin, const IntList& sizes) {
  return Apply(kSlice, {x}, {.shape = TensorShape(sizes), .begin = begin});
}

}  // namespace parasol
