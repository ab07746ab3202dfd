#ifndef PARASOL_ML_INITIALIZER_ORTHOGONAL_H_
#define PARASOL_ML_INITIALIZER_ORTHOGONAL_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace parasol {

// Returns the matrix Q of the QR decomposition of a matrix of normal numbers,
// with a diagonal of R above 0: row-major [rows, columns], with orthonormal
// columns, or rows if these are fewer. `normal` returns the number of an
// element of the longer by the shorter side, row-major. Takes about 2 · longer
// · shorter² operations.
std::vector<double> OrthogonalMatrix(
    int64_t rows, int64_t columns,
    absl::FunctionRef<double(int64_t element)> normal);

}  // namespace parasol

#endif  // PARASOL_ML_INITIALIZER_ORTHOGONAL_H_
