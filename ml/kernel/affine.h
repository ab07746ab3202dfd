#ifndef PARASOL_ML_KERNEL_AFFINE_H_
#define PARASOL_ML_KERNEL_AFFINE_H_

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// All of these enqueue on the compute stream and return; outputs overlap no
// input. Products are float32 throughout unless the device was opened with
// another precision, so that a job converges alike wherever its workers run.
// Shapes that do not fit are the caller's bug. Unavailable: the device was
// lost.

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

// What the functions above choose from.
namespace cpu {
absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y);
absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx);
absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias);
}  // namespace cpu

namespace cuda {
absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y);
absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx);
absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias);

// What comes after a product: y = epilogue(y + bias), no bias when null; and
// the sum of dy's rows, which has the same bits every time.
absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           MutableMatrixView y);
absl::Status SumRows(Device& device, MatrixView dy, float* sum);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_AFFINE_H_
