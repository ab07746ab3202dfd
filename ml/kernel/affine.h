#ifndef PARASOL_ML_KERNEL_AFFINE_H_
#define PARASOL_ML_KERNEL_AFFINE_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// All functions of this header enqueue on the compute stream and return;
// outputs overlap no input. Products are float32 throughout unless the device
// was opened with another precision, so that training converges alike on CPU
// and CUDA devices. The caller guarantees that the shapes fit. Error
// Unavailable: the device was lost.

enum class Epilogue { kNone, kRelu };

// y[m,n] = epilogue(x[m,k] · w[k,n] + bias[n]); no bias when null.
absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y);

// dx[m,k] = dy[m,n] · w[k,n]ᵀ.
absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx);

// dw[k,n] = x[m,k]ᵀ · dy[m,n], and dbias[n] = the sum of dy's rows unless null.
absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias);

// Two steps beside other products. ApplyEpilogue() computes y[m,n] =
// epilogue(y[m,n] + bias[n]), without a bias if `bias` is null; SumRows()
// writes sum[n] = Σ over m of dy[m,n], whose bits are the same every time.
absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           MutableMatrixView y);
absl::Status SumRows(Device& device, MatrixView dy, float* sum);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y);
absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx);
absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias);
absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           Elements y, int64_t rows, int64_t columns);
absl::Status SumRows(Device& device, ConstElements dy, int64_t rows,
                     int64_t columns, float* sum);
}  // namespace cpu

namespace cuda {
absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y);
absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx);
absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias);
absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           Elements y, int64_t rows, int64_t columns);
absl::Status SumRows(Device& device, ConstElements dy, int64_t rows,
                     int64_t columns, float* sum);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_AFFINE_H_
