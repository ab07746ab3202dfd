#include "ml/kernel/table_rows.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status GatherRows(Device& device, const TableRows* table,
                        const int32_t* positions, MutableMatrixView y) {
  return PARASOL_DISPATCH(device, GatherRows(device, table, positions, y));
}

absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       const RowPlaces& by_row, const TableRows* table) {
  return PARASOL_DISPATCH(device,
                          AddToRows(device, dy, positions, by_row, table));
}

absl::Status CombineRows(Device& device, const TableRows* table,
                         const Bags& bags, Combiner combiner, const float* bias,
                         MutableMatrixView y) {
  CHECK_EQ(y.rows, bags.examples);
  return PARASOL_DISPATCH(device,
                          CombineRows(device, table, bags, combiner, bias, y));
}

absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, const TableRows* table) {
  CHECK_EQ(dy.rows, bags.examples);
  return PARASOL_DISPATCH(device,
                          AddCombinedToRows(device, dy, bags, combiner, table));
}

absl::Status SumColumns(Device& device, MatrixView dy, float* sum) {
  return PARASOL_DISPATCH(device, SumColumns(device, dy, sum));
}

absl::Status GatherSequences(Device& device, const TableRows* table,
                             const Bags& bags, int64_t length,
                             MutableMatrixView y) {
  CHECK_EQ(y.rows, bags.examples * length);
  return PARASOL_DISPATCH(device,
                          GatherSequences(device, table, bags, length, y));
}

absl::Status AddSequencesToRows(Device& device, MatrixView dy, const Bags& bags,
                                int64_t length, const TableRows* table) {
  CHECK_EQ(dy.rows, bags.examples * length);
  return PARASOL_DISPATCH(device,
                          AddSequencesToRows(device, dy, bags, length, table));
}

absl::Status MaskSequences(Device& device, const Bags& bags, int64_t length,
                           float* mask) {
  return PARASOL_DISPATCH(device, MaskSequences(device, bags, length, mask));
}

}  // namespace parasol
