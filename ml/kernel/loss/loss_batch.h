#ifndef PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_
#define PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_

#include "ml/device/matrix.h"

namespace parasol {

// What a loss compares, in the device's memory. A row of `outputs` is an
// example's.
struct LossBatch {
  MatrixView outputs;
  // [rows, columns], or what the loss says.
  const float* labels = nullptr;
  const float* weights = nullptr;  // [rows]; null: all 1
};

// Where a loss goes, in the device's memory. Overlaps nothing that is read.
struct LossResult {
  float* losses = nullptr;  // [rows]: of each example, times its weight
  // [rows, columns]: of the mean of `losses` by each output. Not computed when
  // null.
  float* gradient = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_
