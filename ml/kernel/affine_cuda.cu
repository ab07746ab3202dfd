#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_column_sums.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_launch.h"
#include "ml/kernel/affine.h"

namespace parasol::cuda {
namespace {

template <bool kBias, bool kRelu>
struct EpilogueOf {
  const float* bias;
  int64_t columns;
  float* y;
  __device__ void operator()(int64_t i) const {
    float value = y[i];
    if (kBias) value += bias[i % columns];
    if (kRelu) value = value < 0 ? 0 : value;
    y[i] = value;
  }
};

absl::Status Multiply(CudaDevice& device, MatrixView a, Transpose transpose_a,
                      MatrixView b, Transpose transpose_b,
                      MutableMatrixView c) {
  RETURN_IF_ERROR(device.ComputeStream().status());
  return device.blas().Multiply(a, transpose_a, b, transpose_b, c);
}

CudaDevice& Cuda(Device& device) { return static_cast<CudaDevice&>(device); }

}  // namespace

absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           MutableMatrixView y) {
  constexpr char kName[] = "bias and relu";
  const bool relu = epilogue == Epilogue::kRelu;
  if (bias == nullptr) {
    if (!relu) return absl::OkStatus();
    return ForEach(device, kName, y.size(),
                   EpilogueOf<false, true>{nullptr, y.columns, y.data});
  }
  if (!relu) {
    return ForEach(device, kName, y.size(),
                   EpilogueOf<true, false>{bias, y.columns, y.data});
  }
  return ForEach(device, kName, y.size(),
                 EpilogueOf<true, true>{bias, y.columns, y.data});
}

absl::Status SumRows(Device& device, MatrixView dy, float* sum) {
  return SumRowsOf(device, "sum of rows", dy, sum);
}

absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y) {
  RETURN_IF_ERROR(
      Multiply(Cuda(device), x, Transpose::kNo, w, Transpose::kNo, y));
  return ApplyEpilogue(device, bias, epilogue, y);
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
  return SumRows(device, dy, dbias);
}

}  // namespace parasol::cuda
