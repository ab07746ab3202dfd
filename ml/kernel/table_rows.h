#ifndef PARASOL_ML_KERNEL_TABLE_ROWS_H_
#define PARASOL_ML_KERNEL_TABLE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// Functions on the rows of a table that examples look up. All enqueue on the
// compute stream and return; outputs overlap no input. Positions are below the
// number of rows. Error Unavailable: the device was lost.

enum class Combiner {
  kSum,
  kMean,  // the sum divided by the sum of weights; 0 if the latter is 0
};

// The rows that each example looks up. Example i has the positions and weights
// [offsets[i], offsets[i + 1]).
struct Bags {
  const int32_t* offsets = nullptr;    // [examples + 1]
  const int32_t* positions = nullptr;  // indices of rows
  const float* weights = nullptr;      // null: all 1
  int64_t examples = 0;
};

// Computes y[i] = rows[positions[i]] for each row i of `y`, which has the width
// of the table's rows.
absl::Status GatherRows(Device& device, const float* rows,
                        const int32_t* positions, MutableMatrixView y);

// Adds dy[i] to rows[positions[i]].
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       float* rows);

// Computes y[i] = combiner(weight · row, over the bag of example i) + bias; no
// bias if null.
absl::Status CombineRows(Device& device, const float* rows, const Bags& bags,
                         Combiner combiner, const float* bias,
                         MutableMatrixView y);

// Adds the gradient of CombineRows() by its rows to `rows`.
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, float* rows);

// Computes the gradient of CombineRows() by its bias: sum[n] = Σ over rows of
// dy[row, n].
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status GatherRows(Device& device, const float* rows,
                        const int32_t* positions, MutableMatrixView y);
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       float* rows);
absl::Status CombineRows(Device& device, const float* rows, const Bags& bags,
                         Combiner combiner, const float* bias,
                         MutableMatrixView y);
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, float* rows);
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);
}  // namespace cpu

namespace cuda {
absl::Status GatherRows(Device& device, const float* rows,
                        const int32_t* positions, MutableMatrixView y);
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       float* rows);
absl::Status CombineRows(Device& device, const float* rows, const Bags& bags,
                         Combiner combiner, const float* bias,
                         MutableMatrixView y);
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, float* rows);
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_TABLE_ROWS_H_
