#ifndef PARASOL_ML_DEVICE_CPU_BLAS_H_
#define PARASOL_ML_DEVICE_CPU_BLAS_H_

#include <memory>

#include "absl/status/status.h"
#include "ml/device/matrix.h"

namespace parasol {

// Products of matrices with oneDNN, on the calling thread and `threads - 1` of
// OpenMP's. Keeps the primitive of each shape that it has seen and one scratch
// memory for all of them, so that a product of a known shape allocates nothing
// but oneDNN's list of arguments. (oneDNN's plain dnnl_sgemm() maps and faults
// up to a megabyte in each call.) Not thread-safe.
class CpuBlas {
 public:
  explicit CpuBlas(int threads);
  ~CpuBlas();

  // Computes c = op(a) · op(b) in float32, where `a` and `b` are given as they
  // lie in memory. `c` overlaps neither.
  //   Unavailable  oneDNN refused: names the shape and oneDNN's status.
  absl::Status Multiply(MatrixView a, Transpose transpose_a, MatrixView b,
                        Transpose transpose_b, MutableMatrixView c);

 private:
  class Primitives;

  const int threads_;
  const std::unique_ptr<Primitives> primitives_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CPU_BLAS_H_
