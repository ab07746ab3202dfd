// Gather(), SegmentSum() and OneHot() of ml/tape/arrange.h.

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/tape/arrange.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

// Appends the axes of `shape` from axis `first` on.
absl::Status AppendAxes(const TensorShape& shape, int first, TensorShape& to) {
  if (to.rank() + shape.rank() - first > IntList::kMost) {
    return absl::InvalidArgumentError("the result has more than 8 axes");
  }
  for (int i = first; i < shape.rank(); ++i) to.Append(shape[i]);
  return absl::OkStatus();
}

absl::StatusOr<TensorType> GatherType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckDType(call, 1, DType::kInt64));
  if (call.shape(0).rank() == 0) {
    return absl::InvalidArgumentError("a scalar has no rows");
  }
  TensorShape shape = call.shape(1);
  RETURN_IF_ERROR(AppendAxes(call.shape(0), 1, shape));
  return TensorType{call.inputs[0].dtype(), shape};
}

template <typename T>
absl::Status GatherRows(const OperationCall& call, const T* x, T* y) {
  const int64_t rows = call.shape(0)[0];
  const int64_t number = call.inputs[1].size();
  const int64_t width = rows == 0 ? 0 : call.inputs[0].size() / rows;
  const int64_t* const ids = call.ints(1);
  for (int64_t i = 0; i < number; ++i) {
    if (ids[i] < 0 || ids[i] >= rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "id ", ids[i], ", at place ", i, ", is not one of ", rows, " rows"));
    }
    std::copy_n(x + ids[i] * width, width, y + i * width);
  }
  return absl::OkStatus();
}

absl::Status GatherCpu(const OperationCall& call, const NewTensor& result) {
  return call.inputs[0].dtype() == DType::kFloat32
             ? GatherRows(call, call.floats(0), result.floats().data())
             : GatherRows(call, call.ints(0), result.ints().data());
}

void GatherGradient(GradientCall& call) {
  if (!call.wants(0)) return;
  const TensorShape& shape = call.input(0).shape();
  call.Give(0, SegmentSum(call.d_output(), call.input(1), shape[0]));
}

absl::StatusOr<TensorType> SegmentSumType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckDType(call, 0, DType::kFloat32));
  RETURN_IF_ERROR(CheckDType(call, 1, DType::kInt64));
  const TensorShape& x = call.shape(0);
  const TensorShape& ids = call.shape(1);
  bool fits = ids.rank() <= x.rank();
  for (int i = 0; fits && i < ids.rank(); ++i) fits = ids[i] == x[i];
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", x.ToString(), " doesn't begin with ",
                     ids.ToString(), ", the shape of the ids"));
  }
  if (call.attributes.count < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(call.attributes.count, " segments"));
  }
  TensorShape shape;
  shape.Append(call.attributes.count);
  RETURN_IF_ERROR(AppendAxes(x, ids.rank(), shape));
  return TensorType{DType::kFloat32, shape};
}

absl::Status SegmentSumCpu(const OperationCall& call, const NewTensor& result) {
  const absl::Span<float> y = result.floats();
  std::fill(y.begin(), y.end(), 0.f);
  const int64_t count = call.attributes.count;
  const int64_t number = call.inputs[1].size();
  const int64_t width = number == 0 ? 0 : call.inputs[0].size() / number;
  const int64_t* const ids = call.ints(1);
  for (int64_t i = 0; i < number; ++i) {
    if (ids[i] >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("id ", ids[i], ", at place ", i, ", is not one of ",
                       count, " segments"));
    }
    if (ids[i] < 0) continue;
    const float* const from = call.floats(0) + i * width;
    float* const to = y.data() + ids[i] * width;
    for (int64_t c = 0; c < width; ++c) to[c] += from[c];
  }
  return absl::OkStatus();
}

// Rows without a segment have gradient 0.
void SegmentSumGradient(GradientCall& call) {
  if (!call.wants(0)) return;
  const Tensor& ids = call.input(1);
  absl::StatusOr<NewTensor> clamped =
      TensorAccess::New({DType::kInt64, ids.shape()});
  if (!clamped.ok()) return call.Give(0, Tensor::Error(clamped.status()));
  const absl::Span<const int64_t> given = ids.ints();
  bool all = true;
  for (size_t i = 0; i < given.size(); ++i) {
    all = all && given[i] >= 0;
    clamped->ints()[i] = std::max<int64_t>(given[i], 0);
  }
  const Tensor rows = Gather(call.d_output(), clamped->tensor);
  if (all || call.attributes().count == 0) {
    return call.Give(0, all ? rows : Zeros(call.input(0).shape()));
  }
  TensorShape mask = ids.shape();
  while (mask.rank() < call.input(0).rank()) mask.Append(1);
  call.Give(0, rows * Reshape(GreaterEqual(ids, Tensor::Ints({0}, {})), mask));
}

absl::StatusOr<TensorType> OneHotType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckDType(call, 0, DType::kInt64));
  if (call.attributes.count < 0 || call.shape(0).rank() == IntList::kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", call.shape(0).ToString(), " and depth ",
                     call.attributes.count));
  }
  TensorShape shape = call.shape(0);
  shape.Append(call.attributes.count);
  return TensorType{DType::kFloat32, shape};
}

absl::Status OneHotCpu(const OperationCall& call, const NewTensor& result) {
  const absl::Span<float> y = result.floats();
  std::fill(y.begin(), y.end(), call.attributes.low);
  const int64_t depth = call.attributes.count;
  for (int64_t i = 0; i < call.inputs[0].size(); ++i) {
    const int64_t id = call.ints(0)[i];
    if (id >= 0 && id < depth) y[i * depth + id] = call.attributes.high;
  }
  return absl::OkStatus();
}

}  // namespace

const TapeOperationKind kGather = {.name = "gather",
                                   .type = GatherType,
                                   .cpu = GatherCpu,
                                   .gradient = GatherGradient,
                                   .gradient_reads_output = false};
const TapeOperationKind kSegmentSum = {.name = "segment_sum",
                                       .type = SegmentSumType,
                                       .cpu = SegmentSumCpu,
                                       .gradient = SegmentSumGradient,
                                       .gradient_reads_output = false};
const TapeOperationKind kOneHot = {
    .name = "one_hot", .type = OneHotType, .cpu = OneHotCpu};

Tensor Gather(const Tensor& x, const Tensor& ids) {
  return Apply(kGather, {x, ids});
}

Tensor SegmentSum(const Tensor& x, const Tensor& ids, int64_t count) {
  return Apply(kSegmentSum, {x, ids}, {.count = count});
}

Tensor OneHot(const Tensor& ids, int64_t depth, float on, float off) {
  return Apply(kOneHot, {ids}, {.count = depth, .low = off, .high = on});
}

}  // namespace parasol
