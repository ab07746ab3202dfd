#include <algorithm>
#include <cstdint>

#include "base/multiversion.h"
#include "base/status_macros.h"
#include "ml/device/cpu_device.h"
#include "ml/kernel/affine.h"
#include "ml/kernel/column_products.h"

namespace parasol::cpu {
namespace {

CpuBlas& BlasOf(Device& device) {
  return static_cast<CpuDevice&>(device).blas();
}

PARASOL_MULTIVERSION
void AddToRows(const float* bias, MutableMatrixView y) {
  for (int64_t row = 0; row < y.rows; ++row) {
    float* const out = y.data + row * y.columns;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < y.columns; ++i) out[i] += bias[i];
  }
}

// Clamps are written so that NaN stays NaN: a diverged job must not look like a
// dead one.
PARASOL_MULTIVERSION
void ClampToZero(MutableMatrixView y) {
  const int64_t size = y.size();
  PARASOL_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < size; ++i) y.data[i] = y.data[i] < 0 ? 0 : y.data[i];
}

PARASOL_MULTIVERSION
void AddToRowsAndClampToZero(const float* bias, MutableMatrixView y) {
  for (int64_t row = 0; row < y.rows; ++row) {
    float* const out = y.data + row * y.columns;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < y.columns; ++i) {
      const float value = out[i] + bias[i];
      out[i] = value < 0 ? 0 : value;
    }
  }
}

PARASOL_MULTIVERSION
void AddUpRows(MatrixView dy, float* sum) {
  std::fill_n(sum, dy.columns, 0.0f);
  for (int64_t row = 0; row < dy.rows; ++row) {
    const float* const in = dy.data + row * dy.columns;
    PARASOL_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < dy.columns; ++i) sum[i] += in[i];
  }
}

}  // namespace

absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y) {
  if (y.columns == 1) {
    MultiplyByColumn(device, x, w.data, y.data);
  } else {
    RETURN_IF_ERROR(
        BlasOf(device).Multiply(x, Transpose::kNo, w, Transpose::kNo, y));
  }
  return ApplyEpilogue(device, bias, epilogue, y.data, y.rows, y.columns);
}

absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx) {
  if (dy.columns == 1) {
    MultiplyColumnByRow(device, dy.data, w.data, dx);
    return absl::OkStatus();
  }
  return BlasOf(device).Multiply(dy, Transpose::kNo, w, Transpose::kYes, dx);
}

absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias) {
  if (dy.columns == 1) {
    MultiplyRowsByColumn(device, x, dy.data, dw.data);
  } else {
    RETURN_IF_ERROR(
        BlasOf(device).Multiply(x, Transpose::kYes, dy, Transpose::kNo, dw));
  }
  if (dbias != nullptr) AddUpRows(dy, dbias);
  return absl::OkStatus();
}

absl::Status ApplyEpilogue(Device& /*device*/, const float* bias,
                           Epilogue epilogue, Elements y, int64_t rows,
                           int64_t columns) {
  const MutableMatrixView matrix = {y, rows, columns};
  const bool relu = epilogue == Epilogue::kRelu;
  if (bias != nullptr && relu) {
    AddToRowsAndClampToZero(bias, matrix);
  } else if (bias != nullptr) {
    AddToRows(bias, matrix);
  } else if (relu) {
    ClampToZero(matrix);
  }
  return absl::OkStatus();
}

absl::Status SumRows(Device& /*device*/, ConstElements dy, int64_t rows,
                     int64_t columns, float* sum) {
  AddUpRows({dy, rows, columns}, sum);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
