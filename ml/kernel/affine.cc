#include "ml/kernel/affine.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Affine(Device& device, MatrixView x, MatrixView w,
                    const float* bias, Epilogue epilogue, MutableMatrixView y) {
  CHECK_EQ(x.columns, w.rows);
  CHECK_EQ(y.rows, x.rows);
  CHECK_EQ(y.columns, w.columns);
  return PARASOL_DISPATCH(device, Affine(device, x, w, bias, epilogue, y));
}

absl::Status AffineInputGradient(Device& device, MatrixView dy, MatrixView w,
                                 MutableMatrixView dx) {
  CHECK_EQ(dy.columns, w.columns);
  CHECK_EQ(dx.rows, dy.rows);
  CHECK_EQ(dx.columns, w.rows);
  return PARASOL_DISPATCH(device, AffineInputGradient(device, dy, w, dx));
}

absl::Status AffineVariableGradients(Device& device, MatrixView x,
                                     MatrixView dy, MutableMatrixView dw,
                                     float* dbias) {
  CHECK_EQ(x.rows, dy.rows);
  CHECK_EQ(dw.rows, x.columns);
  CHECK_EQ(dw.columns, dy.columns);
  return PARASOL_DISPATCH(device,
                          AffineVariableGradients(device, x, dy, dw, dbias));
}

absl::Status ApplyEpilogue(Device& device, const float* bias, Epilogue epilogue,
                           MutableMatrixView y) {
  return PARASOL_DISPATCH(
      device, ApplyEpilogue(device, bias, epilogue, y.data, y.rows, y.columns));
}

absl::Status SumRows(Device& device, MatrixView dy, float* sum) {
  return PARASOL_DISPATCH(device,
                          SumRows(device, dy.data, dy.rows, dy.columns, sum));
}

}  // namespace parasol
