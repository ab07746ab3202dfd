#ifndef PARASOL_ML_TAPE_MATMUL_H_
#define PARASOL_ML_TAPE_MATMUL_H_

#include "absl/status/status.h"
#include "ml/tape/tensor.h"

namespace parasol {

struct MatMulOptions {
  // True: the operand is read with its two innermost axes exchanged.
  bool transpose_a = false;
  bool transpose_b = false;
};

// Returns the products of matrices [..., m, k] and [..., k, n], float32. The
// axes before the two innermost ones broadcast.
//   InvalidArgument  (as the result's status) the shapes don't fit.
Tensor MatMul(const Tensor& a, const Tensor& b,
              const MatMulOptions& options = {});

// Sets the number of CPU threads with which products are computed that are
// asked for on the calling thread: 1 at first.
//   InvalidArgument  it is not from 1 to 1024.
absl::Status SetMatMulThreads(int threads);

}  // namespace parasol

#endif  // PARASOL_ML_TAPE_MATMUL_H_
