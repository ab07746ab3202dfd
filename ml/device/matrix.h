#ifndef PARASOL_ML_DEVICE_MATRIX_H_
#define PARASOL_ML_DEVICE_MATRIX_H_

#include <cstdint>

namespace parasol {

// A float32 matrix, row-major, without gaps, in the memory of the device that a
// kernel runs on. Does not own its memory.
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

// The way in which a product reads a factor.
enum class Transpose { kNo, kYes };

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_MATRIX_H_
