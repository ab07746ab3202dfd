#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/cpu_device.h"
#include "oneapi/dnnl/dnnl.h"

namespace parasol::cpu {
namespace {

enum class Transpose : char { kNo = 'N', kYes = 'T' };

// c = op(a) · op(b), where `a` and `b` are given as they lie in memory.
absl::Status Multiply(Device& device, MatrixView a, Transpose transpose_a,
                      MatrixView b, Transpose transpose_b,
                      MutableMatrixView c) {
  // OpenMP keeps this number per calling thread, not per process.
  omp_set_num_threads(static_cast<CpuDevice&>(device).threads());
  const int64_t inner = transpose_a == Transpose::kNo ? a.columns : a.rows;
  const dnnl_status_t status =
      dnnl_sgemm(static_cast<char>(transpose_a), static_cast<char>(transpose_b),
                 c.rows, c.columns, inner, /*alpha=*/1, a.data, a.columns,
                 b.data, b.columns, /*beta=*/0, c.data, c.columns);
  if (status != dnnl_success) {
    return absl::UnavailableError(absl::StrCat(
        device.name(), ": oneDNN's sgemm of ", c.rows, "x", inner, " by ",
        inner, "x", c.columns, " failed, status ", static_cast<int>(status)));
  }
  return absl::OkStatus();
}

void AddToRows(const float* bias, MutableMatrixView y) {
  for (int64_t row = 0; row < y.rows; ++row) {
    float* const out = y.data + row * y.columns;
    for (int64_t i = 0; i < y.columns; ++i) out[i] += bias[i];
  }
}

// Written so that NaN stays NaN: a diverged job must not look like a dead one.
void ClampToZero(MutableMatrixView y) {
  for (int64_t i = 0; i < y.size(); ++i) {
    y.data[i] = y.data[i] < 0 ? 0 : y.data[i];
  }
}

void SumRows(MatrixView dy, float* sum) {
  std::fill_n(sum, dy.columns, 0.0f);
  for (int64_t row = 0; row < dy.rows; ++row) {
    const float* const in = dy.data + row * dy.columns;
    for (int64_t i = 0; i < dy.columns; ++i) sum[i] += in[i];
  }
}

}  // namespace

absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y) {
  RETURN_IF_ERROR(Multiply(device, x, Transpose::kNo, w, Transpose::kNo, y));
  if (bias != nullptr) AddToRows(bias, y);
  if (epilogue == Epilogue::kRelu) ClampToZero(y);
  return absl::OkStatus();
}

absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx) {
  return Multiply(device, dy, Transpose::kNo, w, Transpose::kYes, dx);
}

absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias) {
  RETURN_IF_ERROR(Multiply(device, x, Transpose::kYes, dy, Transpose::kNo, dw));
  if (dbias != nullptr) SumRows(dy, dbias);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
