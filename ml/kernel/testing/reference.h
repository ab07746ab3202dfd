#ifndef PARASOL_ML_KERNEL_TESTING_REFERENCE_H_
#define PARASOL_ML_KERNEL_TESTING_REFERENCE_H_

#include <cstdint>
#include <vector>

// The operations as plain loops in double precision. They are the specification
// that the kernels of every device are tested against.
namespace parasol::reference {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;  // row-major

  Matrix(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), values(rows * columns) {}
  double& at(int64_t row, int64_t column) {
    return values[row * columns + column];
  }
  double at(int64_t row, int64_t column) const {
    return values[row * columns + column];
  }
};

Matrix Product(const Matrix& a, const Matrix& b);
Matrix Transposed(const Matrix& a);

// Returns x · w + bias; no bias if `bias` is empty.
Matrix Affine(const Matrix& x, const Matrix& w,
              const std::vector<double>& bias);
std::vector<double> SumOfRows(const Matrix& a);

Matrix Relu(const Matrix& x);
Matrix ReluGradient(const Matrix& y, const Matrix& dy);

struct CrossEntropy {
  std::vector<double> loss;
  std::vector<int32_t> correct;
  Matrix gradient;
};
CrossEntropy SoftmaxCrossEntropy(const Matrix& logits,
                                 const std::vector<int32_t>& labels);

}  // namespace parasol::reference

#endif  // PARASOL_ML_KERNEL_TESTING_REFERENCE_H_
