#include "ml/kernel/table_rows.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status GatherRows(Device& device, const float* rows,
                        const int32_t* positions, MutableMatrixView y) {
  return PARASOL_DISPATCH(device, GatherRows(device, rows, positions, y));
}

absl::Status AddToRows(Device& device, MatrixView dy, const int32_t* positions,
                       float* rows) {
  return PARASOL_DISPATCH(device, AddToRows(device, dy, positions, rows));
}

absl::Status CombineRows(Device& device, const float* rows, const Bags& bags,
                         Combiner combiner, const float* bias,
                         MutableMatrixView y) {
  CHECK_EQ(y.rows, bags.examples);
  return PARASOL_DISPATCH(device,
                          CombineRows(device, rows, bags, combiner, bias, y));
}

absl::Status AddCombinedToRows(Device& device, MatrixView dy, const Bags& bags,
                               Combiner combiner, float* rows) {
  CHECK_EQ(dy.rows, bags.examples);
  return PARASOL_DISPATCH(device,
                          AddCombinedToRows(device, dy, bags, combiner, rows));
}

absl::Status SumColumns(Device& device, MatrixView dy, float* sum) {
  return PARASOL_DISPATCH(device, SumColumns(device, dy, sum));
}

}  // namespace parasol
