#ifndef PARASOL_ML_DEVICE_MATRIX_H_
#define PARASOL_ML_DEVICE_MATRIX_H_

#include <cstdint>

namespace parasol {

// float32, row-major, without gaps, in the memory of the device that a kernel
// runs on. Owned by somebody else.
struct MatrixView {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t size() const { return rows * columns; }
};

struct MutableMatrixView {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t size() const { return rows * columns; }
  operator MatrixView() const { return {data, rows, columns}; }  // NOLINT
};

// How a product reads a factor.
enum class Transpose { kNo, kYes };

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_MATRIX_H_
