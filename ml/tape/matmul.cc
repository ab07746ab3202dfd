#include "ml/tape/matmul.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/device/cpu_blas.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"
#include "ml/tape/arrange.h"
#include "ml/tape/broadcast.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"

namespace parasol {
namespace {

thread_local int threads_of_products = 1;
thread_local std::unique_ptr<CpuBlas> blas_of_thread;

CpuBlas& Blas() {
  if (blas_of_thread == nullptr) {
    blas_of_thread = std::make_unique<CpuBlas>(threads_of_products);
  }
  return *blas_of_thread;
}

// Returns the shape without its two innermost axes.
TensorShape Batches(const TensorShape& shape) {
  return TensorShape(shape.sizes().values().subspan(0, shape.rank() - 2));
}

// A matrix of an operand: its rows and columns as they lie in memory, and as
// they are read.
struct Operand {
  Operand(const TensorShape& shape, bool transposed)
      : rows(shape[shape.rank() - 2]),
        columns(shape[shape.rank() - 1]),
        transposed(transposed) {}
  int64_t height() const { return transposed ? columns : rows; }
  int64_t width() const { return transposed ? rows : columns; }
  Transpose transpose() const {
    return transposed ? Transpose::kYes : Transpose::kNo;
  }
  MatrixView At(const float* data, int64_t number) const {
    return {data + number * rows * columns, rows, columns};
  }

  int64_t rows, columns;
  bool transposed;
};

absl::StatusOr<TensorType> MatMulType(const OperationCall& call) {
  RETURN_IF_ERROR(CheckFloats(call));
  const TensorShape& a = call.shape(0);
  const TensorShape& b = call.shape(1);
  const auto fault = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shapes ", a.ToString(),
        call.attributes.transpose_a ? " transposed" : "", " and ", b.ToString(),
        call.attributes.transpose_b ? " transposed" : "", ": ", what));
  };
  if (a.rank() < 2 || b.rank() < 2) return fault("a matrix has two axes");
  const Operand left(a, call.attributes.transpose_a);
  const Operand right(b, call.attributes.transpose_b);
  if (left.width() != right.height()) {
    return fault("the first has not as many columns as the second has rows");
  }
  const absl::StatusOr<TensorShape> batches =
      BroadcastShape(Batches(a), Batches(b));
  if (!batches.ok())
    return fault("the axes before the last two don't broadcast");
  TensorShape shape = *batches;
  shape.Append(left.height());
  shape.Append(right.width());
  return TensorType{DType::kFloat32, shape};
}

absl::Status MatMulCpu(const OperationCall& call, const NewTensor& result) {
  const Operand a(call.shape(0), call.attributes.transpose_a);
  const Operand b(call.shape(1), call.attributes.transpose_b);
  const int64_t size = a.height() * b.width();
  const absl::Span<float> y = result.floats();
  if (y.empty()) return absl::OkStatus();
  if (a.width() == 0) {
    std::fill(y.begin(), y.end(), 0.f);
    return absl::OkStatus();
  }
  absl::Status status;
  ForEachBroadcastRow(
      Batches(result.tensor.shape()), Batches(call.shape(0)),
      Batches(call.shape(1)),
      [&](int64_t out, int64_t of_a, int64_t of_b, int64_t number,
          int64_t a_step, int64_t b_step) {
        for (int64_t i = 0; i < number && status.ok(); ++i) {
          status = Blas().Multiply(
              a.At(call.floats(0), of_a + i * a_step), a.transpose(),
              b.At(call.floats(1), of_b + i * b_step), b.transpose(),
              {y.data() + (out + i) * size, a.height(), b.width()});
        }
      });
  return status;
}

// Of c = op(a) · op(b): the gradient by op(a) is d · op(b)ᵀ, and by op(b)
// op(a)ᵀ · d; an operand that was transposed has the transposed one.
void MatMulGradient(GradientCall& call) {
  const Tensor& d = call.d_output();
  const bool a = call.attributes().transpose_a;
  const bool b = call.attributes().transpose_b;
  if (call.wants(0)) {
    const Tensor by_a =
        a ? MatMul(call.input(1), d, {.transpose_a = b, .transpose_b = true})
          : MatMul(d, call.input(1), {.transpose_b = !b});
    call.Give(0, SumTo(by_a, call.input(0).shape()));
  }
  if (call.wants(1)) {
    const Tensor by_b =
        b ? MatMul(d, call.input(0), {.transpose_a = true, .transpose_b = a})
          : MatMul(call.input(0), d, {.transpose_a = !a});
    call.Give(1, SumTo(by_b, call.input(1).shape()));
  }
}

// Returns true if all matrices of `a` can be one above the other.
bool IsOneMatrix(const Tensor& a, const Tensor& b,
                 const MatMulOptions& options) {
  return a.status().ok() && b.status().ok() && a.rank() > 2 && b.rank() == 2 &&
         a.size() > 0 && !options.transpose_a;
}

}  // namespace

const TapeOperationKind kMatMul = {.name = "matmul",
                                   .type = MatMulType,
                                   .cpu = MatMulCpu,
                                   .gradient = MatMulGradient,
                                   .gradient_reads_output = false};

Tensor MatMul(const Tensor& a, const Tensor& b, const MatMulOptions& options) {
  if (!IsOneMatrix(a, b, options)) {
    return Apply(kMatMul, {a, b},
                 {.transpose_a = options.transpose_a,
                  .transpose_b = options.transpose_b});
  }
  TensorShape shape = a.shape();
  const int64_t columns = shape[a.rank() - 1];
  const Tensor product =
      MatMul(Reshape(a, {a.size() / columns, columns}), b, options);
  if (!product.status().ok()) return product;
  shape[a.rank() - 1] = product.shape()[1];
  return Reshape(product, shape);
}

absl::Status SetMatMulThreads(int threads) {
  RETURN_IF_ERROR(Device::CheckThreads(threads));
  threads_of_products = threads;
  blas_of_thread.reset();
  return absl::OkStatus();
}

}  // namespace parasol
