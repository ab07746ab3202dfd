#ifndef PARASOL_ML_KERNEL_TABLE_ROWS_H_
#define PARASOL_ML_KERNEL_TABLE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"

namespace parasol {

// Rows of a table that examples look up: all of these enqueue on the compute
// stream and return; outputs overlap no input. Positions are below the number
// of rows. Unavailable: the device was lost.

enum class Combiner {
  kSum,
  kMean,  // the sum divided by the sum of weights; 0 where that is 0
};

// Example i has positions and weights [offsets[i], offsets[i + 1]).
struct Bags {
  const int32_t* offsets = nullptr;    // [examples + 1]
  const int32_t* positions = nullptr;  // which row
  const float* weights = nullptr;      // null: all 1
  int64_t examples = 0;
};

// y[i] = rows[positions[i]], as many as `y` has rows, of its width.
absl::Status GatherRows(Device& device, const float* rows,
                        const int32_t* positions, MutableMatrixView y);

// rows[positions[i]] += dy[i].
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       float* rows);

// y[i] = combiner(weight · row of the bag) + bias; no bias when null.
absl::Status CombineRows(Device& device, const float* rows, const Bags& bags,
                         Combiner combiner, const float* bias,
                         MutableMatrixView y);

// The gradient of CombineRows() by its rows, added to `rows`.
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, float* rows);

// The gradient of CombineRows() by its bias: sum[n] = the sum of dy's rows.
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);

// What the functions above choose from.
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
