#ifndef PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_
#define PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_

#include <cstdint>

#include "ml/device/matrix.h"

namespace parasol {

// Arrays that a loss compares, in the device's memory. Each row of `outputs`
// belongs to one example.
struct LossBatch {
  MatrixView outputs;
  // The labels, [rows, columns] unless the loss says otherwise.
  const float* labels = nullptr;
  const float* weights = nullptr;  // [rows]; null: all 1
  // Arrays that a loss that compares rows with each other reads beside labels;
  // the loss says what they are.
  const int32_t* integers = nullptr;
  const float* numbers = nullptr;
  float* scratch = nullptr;  // memory of any contents, as the loss asks for
};

// Arrays that a loss writes, in the device's memory. They overlap no input.
struct LossResult {
  float* losses = nullptr;  // Loss of each example times its weight, [rows].
  // Gradient of the mean of `losses` by each output, [rows, columns]. Not
  // computed if null.
  float* gradient = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_LOSS_LOSS_BATCH_H_
