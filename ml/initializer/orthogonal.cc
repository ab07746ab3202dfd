#include "ml/initializer/orthogonal.h"

#include <algorithm>
#include <cmath>

namespace parasol {
namespace {

double Dot(const double* a, const double* b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

// Modified Gram-Schmidt for `count` vectors of `length` numbers, one after the
// other. A matrix of normal numbers is so far from singular that the vectors'
// products stay below float32's last digit.
void Orthonormalize(int64_t count, int64_t length, double* vectors) {
  for (int64_t j = 0; j < count; ++j) {
    double* const unit = vectors + j * length;
    const double norm = std::sqrt(Dot(unit, unit, length));
    for (int64_t i = 0; i < length; ++i) unit[i] /= norm;
    for (int64_t k = j + 1; k < count; ++k) {
      double* const later = vectors + k * length;
      const double part = Dot(unit, later, length);
      for (int64_t i = 0; i < length; ++i) later[i] -= part * unit[i];
    }
  }
}

}  // namespace

std::vector<double> OrthogonalMatrix(
    int64_t rows, int64_t columns,
    absl::FunctionRef<double(int64_t element)> normal) {
  const int64_t length = std::max(rows, columns);
  const int64_t count = std::min(rows, columns);
  std::vector<double> vectors(rows * columns);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t j = 0; j < count; ++j) {
      vectors[j * length + i] = normal(i * count + j);
    }
  }
  Orthonormalize(count, length, vectors.data());
  if (rows < columns) return vectors;
  std::vector<double> matrix(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      matrix[i * columns + j] = vectors[j * rows + i];
    }
  }
  return matrix;
}

}  // namespace parasol
