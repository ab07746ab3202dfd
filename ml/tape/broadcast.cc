#include "ml/tape/broadcast.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ml/tape/arrange.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/reduce.h"

namespace parasol {
namespace {

// Axes of the result, the innermost last, with how far apart the operands'
// elements lie along each: 0 where one is repeated.
struct BroadcastLoop {
  int rank = 0;
  std::array<int64_t, IntList::kMost> sizes = {};
  std::array<int64_t, IntList::kMost> a_steps = {};
  std::array<int64_t, IntList::kMost> b_steps = {};
};

// Writes the distances of a shape's elements along the axes of `out`.
void StepsOf(const TensorShape& shape, int rank,
             std::array<int64_t, IntList::kMost>& steps) {
  int64_t step = 1;
  for (int i = 1; i <= rank; ++i) {
    const int64_t size = i <= shape.rank() ? shape[shape.rank() - i] : 1;
    steps[rank - i] = size == 1 ? 0 : step;
    step *= size;
  }
}

// Leaves axes of size 1 out, and makes one of two along which both operands go
// on as they began.
BroadcastLoop LoopOf(const TensorShape& out, const TensorShape& a,
                     const TensorShape& b) {
  BroadcastLoop all;
  StepsOf(a, out.rank(), all.a_steps);
  StepsOf(b, out.rank(), all.b_steps);
  BroadcastLoop loop;
  for (int i = 0; i < out.rank(); ++i) {
    if (out[i] == 1) continue;
    const int last = loop.rank - 1;
    if (last >= 0 && loop.a_steps[last] == all.a_steps[i] * out[i] &&
        loop.b_steps[last] == all.b_steps[i] * out[i]) {
      loop.sizes[last] *= out[i];
      loop.a_steps[last] = all.a_steps[i];
      loop.b_steps[last] = all.b_steps[i];
      continue;
    }
    loop.sizes[loop.rank] = out[i];
    loop.a_steps[loop.rank] = all.a_steps[i];
    loop.b_steps[loop.rank++] = all.b_steps[i];
  }
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.sizes[0] = 1;
  }
  return loop;
}

absl::StatusOr<TensorType> BroadcastToType(const OperationCall& call) {
  const TensorShape& shape = call.attributes.shape;
  const absl::StatusOr<TensorShape> both = BroadcastShape(call.shape(0), shape);
  if (both.ok() && *both == shape) {
    return TensorType{call.inputs[0].dtype(), shape};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shape ", call.shape(0).ToString(), " doesn't broadcast to ",
                   shape.ToString()));
}

template <typename T>
void Repeat(const T* from, const TensorShape& shape, const TensorShape& out,
            T* to) {
  ForEachBroadcastRow(out, shape, {},
                      [&](int64_t place, int64_t a, int64_t, int64_t size,
                          int64_t step, int64_t) {
                        if (step == 0) {
                          std::fill_n(to + place, size, from[a]);
                        } else {
                          std::copy_n(from + a, size, to + place);
                        }
                      });
}

absl::Status BroadcastToCpu(const OperationCall& call,
                            const NewTensor& result) {
  const TensorShape& out = result.tensor.shape();
  if (result.tensor.dtype() == DType::kFloat32) {
    Repeat(call.floats(0), call.shape(0), out, result.floats().data());
  } else {
    Repeat(call.ints(0), call.shape(0), out, result.ints().data());
  }
  return absl::OkStatus();
}

void BroadcastToGradient(GradientCall& call) {
  call.Give(0, SumTo(call.d_output(), call.input(0).shape()));
}

}  // namespace

const TapeOperationKind kBroadcastTo = {.name = "broadcast_to",
                                        .type = BroadcastToType,
                                        .cpu = BroadcastToCpu,
                                        .gradient = BroadcastToGradient,
                                        .gradient_reads_inputs = false,
                                        .gradient_reads_output = false};

absl::StatusOr<TensorShape> BroadcastShape(const TensorShape& a,
                                           const TensorShape& b) {
  const int rank = std::max(a.rank(), b.rank());
  TensorShape out(
      absl::MakeConstSpan(std::array<int64_t, IntList::kMost>()).first(rank));
  for (int i = 1; i <= rank; ++i) {
    const int64_t of_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const int64_t of_b = i <= b.rank() ? b[b.rank() - i] : 1;
    if (of_a != of_b && of_a != 1 && of_b != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shapes ", a.ToString(), " and ", b.ToString(), " don't broadcast"));
    }
    out[rank - i] = of_a == 1 ? of_b : of_a;
  }
  return out;
}

void ForEachBroadcastRow(
    const TensorShape& out, const TensorShape& a, const TensorShape& b,
    absl::FunctionRef<void(int64_t out, int64_t a, int64_t b, int64_t size,
                           int64_t a_step, int64_t b_step)>
        row) {
  const int64_t total = out.size();
  if (total == 0) return;
  const BroadcastLoop loop = LoopOf(out, a, b);
  const int inner = loop.rank - 1;
  std::array<int64_t, IntList::kMost> index = {};
  int64_t at_a = 0, at_b = 0;
  for (int64_t place = 0; place < total; place += loop.sizes[inner]) {
    row(place, at_a, at_b, loop.sizes[inner], loop.a_steps[inner],
        loop.b_steps[inner]);
    for (int axis = inner - 1; axis >= 0; --axis) {
      at_a += loop.a_steps[axis];
      at_b += loop.b_steps[axis];
      if (++index[axis] < loop.sizes[axis]) break;
      at_a -= loop.a_steps[axis] * loop.sizes[axis];
      at_b -= loop.b_steps[axis] * loop.sizes[axis];
      index[axis] = 0;
    }
  }
}

Tensor BroadcastTo(const Tensor& x, const TensorShape& shape) {
  if (x.status().ok() && x.shape() == shape) return x;
  return Apply(kBroadcastTo, {x}, {.shape = shape});
}

Tensor SumTo(const Tensor& x, const TensorShape& shape) {
  if (!x.status().ok() || x.shape() == shape) return x;
  const int more = x.rank() - shape.rank();
  Axes axes = Axes::None();
  for (int i = 0; i < x.rank(); ++i) {
    if (i < more || (shape[i - more] == 1 && x.shape()[i] != 1)) axes.Add(i);
  }
  return Reshape(ReduceSum(x, axes), shape);
}

}  // namespace parasol
