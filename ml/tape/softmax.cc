#include "ml/tape/softmax.h"

#include <algorithm>
#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ml/tape/check_operands.h"
#include "ml/tape/elementwise.h"
#include "ml/tape/kinds.h"
#include "ml/tape/operation.h"
#include "ml/tape/reduce.h"

namespace parasol {
namespace {

absl::StatusOr<TensorType> RowsType(const OperationCall& call) {
  const TensorShape& shape = call.shape(0);
  if (shape.rank() == 0 || shape[shape.rank() - 1] == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", shape.ToString(), " has no innermost axis"));
  }
  return TypeOfInput(call);
}

// Writes the exponentials of a row less its largest number, and returns their
// sum.
double Exponentials(const float* x, int64_t size, float largest, float* y) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    y[i] = std::exp(x[i] - largest);
    sum += y[i];
  }
  return sum;
}

template <bool logarithm>
absl::Status SoftmaxCpu(const OperationCall& call, const NewTensor& result) {
  const TensorShape& shape = call.shape(0);
  const int64_t size = shape[shape.rank() - 1];
  const float* x = call.floats(0);
  float* y = result.floats().data();
  const float* const end = x + shape.size();
  for (; x != end; x += size, y += size) {
    const float largest = *std::max_element(x, x + size);
    const double sum = Exponentials(x, size, largest, y);
    if constexpr (logarithm) {
      const float log_sum = static_cast<float>(std::log(sum));
      for (int64_t i = 0; i < size; ++i) y[i] = x[i] - largest - log_sum;
    } else {
      const float scale = static_cast<float>(1 / sum);
      for (int64_t i = 0; i < size; ++i) y[i] *= scale;
    }
  }
  return absl::OkStatus();
}

// dx = y · (d - Σ d · y).
void SoftmaxGradient(GradientCall& call) {
  const Tensor& d = call.d_output();
  const Tensor& y = call.output();
  call.Give(0, y * (d - ReduceSum(d * y, -1, {.keep_dims = true})));
}

// dx = d - softmax(x) · Σ d.
void LogSoftmaxGradient(GradientCall& call) {
  const Tensor& d = call.d_output();
  call.Give(0, d - Exp(call.output()) * ReduceSum(d, -1, {.keep_dims = true}));
}

}  // namespace

const TapeOperationKind kSoftmax = {.name = "softmax",
                                    .type = RowsType,
                                    .cpu = SoftmaxCpu<false>,
                                    .gradient = SoftmaxGradient,
                                    .gradient_reads_inputs = false};
const TapeOperationKind kLogSoftmax = {.name = "log_softmax",
                                       .type = RowsType,
                                       .cpu = SoftmaxCpu<true>,
                                       .gradient = LogSoftmaxGradient,
                                       .gradient_reads_inputs = false};

Tensor Softmax(const Tensor& x) { return Apply(kSoftmax, {x}); }
Tensor LogSoftmax(const Tensor& x) { return Apply(kLogSoftmax, {x}); }

}  // namespace parasol
