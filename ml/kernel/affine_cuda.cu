#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/affine.h"

namespace parasol::cuda {
namespace {

template <typename T, bool kBias, bool kRelu>
struct EpilogueOf {
  const float* bias;
  int64_t columns;
  T* y;
  __device__ void operator()(int64_t i) const {
    float value = ToFloat(y[i]);
    if (kBias) value += bias[i % columns];
    if (kRelu) value = value < 0 ? 0 : value;
    y[i] = Rounded<T>(value);
  }
};

template <typename T>
absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           T* y, int64_t rows, int64_t columns) {
  constexpr char kName[] = "bias and relu";
  const int64_t size = rows * columns;
  const bool relu = epilogue == Epilogue::kRelu;
  if (bias == nullptr) {
    if (!relu) return absl::OkStatus();
    return ForEach(device, kName, size,
                   EpilogueOf<T, false, true>{nullptr, columns, y});
  }
  if (!relu) {
    return ForEach(device, kName, size,
                   EpilogueOf<T, true, false>{bias, columns, y});
  }
  return ForEach(device, kName, size,
                 EpilogueOf<T, true, true>{bias, columns, y});
}

absl::Status Multiply(CudaDevice& device, MatrixView a, Transpose transpose_a,
                      MatrixView b, Transpose transpose_b,
                      MutableMatrixView c) {
  RETURN_IF_ERROR(device.ComputeStream().status());
  return device.blas().Multiply(a, transpose_a, b, transpose_b, c);
}

CudaDevice& Cuda(Device& device) { return static_cast<CudaDevice&>(device); }

}  // namespace

absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           Elements y, int64_t rows, int64_t columns) {
  return WithEdgeType(y.type(), [&]<typename T>() {
    return ApplyEpilogue(device, bias, epilogue, y.As<T>(), rows, columns);
  });
}

absl::Status SumRows(Device& device, ConstElements dy, int64_t rows,
                     int64_t columns, float* sum) {
  return SumRowsOf(device, "sum of rows", dy, rows, columns, sum);
}

absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y) {
  RETURN_IF_ERROR(
      Multiply(Cuda(device), x, Transpose::kNo, w, Transpose::kNo, y));
  return ApplyEpilogue(device, bias, epilogue, y.data, y.rows, y.columns);
}

absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx) {
  return Multiply(Cuda(device), dy, Transpose::kNo, w, Transpose::kYes, dx);
}

absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias) {
  RETURN_IF_ERROR(
      Multiply(Cuda(device), x, Transpose::kYes, dy, Transpose::kNo, dw));
  if (dbias == nullptr) return absl::OkStatus();
  return SumRows(device, dy.data, dy.rows, dy.columns, dbias);
}

}  // namespace parasol::cuda
