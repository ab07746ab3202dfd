#ifndef PARASOL_ML_KERNEL_TABLE_ROWS_H_
#define PARASOL_ML_KERNEL_TABLE_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"
#include "ml/device/matrix.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// Functions on the rows of a table that examples look up. All enqueue on the
// compute stream and return; outputs overlap no input. `table` is an address in
// the device's memory. Positions are below the number of rows. Error
// Unavailable: the device was lost.

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
  // The positions once more, row by row: for gradients on a CUDA device.
  RowPlaces by_row = {};
};

// Computes y[i] = table.values[positions[i]] for each row i of `y`, which has
// the width of the table's rows.
absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y);

// Adds dy[i] to table.gradients[positions[i]], in ascending order of i.
// `by_row` has the same positions row by row, for a CUDA device.
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table);

// Computes y[i] = combiner(weight · value, over the bag of example i) + bias;
// no bias if null.
absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y);

// Adds the gradient of CombineRows() by the values to table.gradients, example
// by example.
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table);

// Computes the gradient of CombineRows() by its bias: sum[n] = Σ over rows of
// dy[row, n].
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);

// Three functions on bags that are sequences: the ids of example i are its
// steps, of which it has `length`; those behind its ids are empty. An example
// has at most `length` ids. Weights are not read.

// Computes y[i · length + step] = the row of the step's id, 0 in an empty step.
// `y` has bags.examples · length rows, of the width of the table's.
absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y);

// Adds the gradient of GatherSequences() by the values to table.gradients, step
// by step.
absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table);

// Computes mask[i, step] = 1 for a step with an id, 0 for an empty one. `mask`
// is [bags.examples, length]; of `bags` only offsets are read.
absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask);

// The implementations for CPU and CUDA devices. The functions above call the
// one for `device`.
namespace cpu {
absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y);
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table);
absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y);
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table);
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);
absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y);
absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table);
absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask);
}  // namespace cpu

namespace cuda {
absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y);
absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table);
absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y);
absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table);
absl::Status SumColumns(Device& device, MatrixView dy, float* sum);
absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y);
absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table);
absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_KERNEL_TABLE_ROWS_H_
