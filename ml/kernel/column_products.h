#ifndef PARASOL_ML_KERNEL_COLUMN_PRODUCTS_H_
#define PARASOL_ML_KERNEL_COLUMN_PRODUCTS_H_

#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol::cpu {

// Products of a matrix x [m, k] with one column, as layers of one unit have
// them, for a CpuDevice. They are as fast as memory is; a general product packs
// the matrix first. Sums have an order of their own, the same on every CPU and
// with any number of threads.

// Computes y = x · w, where `w` has k and `y` has m elements. An element is the
// sum of 16 partial sums, each over every 16th element.
void MultiplyByColumn(Device& device, MatrixView x, const float* w, float* y);

// Computes w = xᵀ · y, with rows added in ascending order.
void MultiplyRowsByColumn(Device& device, MatrixView x, const float* y,
                          float* w);

// Computes x = y · wᵀ.
void MultiplyColumnByRow(Device& device, const float* y, const float* w,
                         MutableMatrixView x);

}  // namespace parasol::cpu

#endif  // PARASOL_ML_KERNEL_COLUMN_PRODUCTS_H_
