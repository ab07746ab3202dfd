#ifndef PARASOL_ML_INPUT_ARROW_COLUMN_VALUES_H_
#define PARASOL_ML_INPUT_ARROW_COLUMN_VALUES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/input/arrow/arrow_type.h"
#include "ml/input/arrow/value_record.h"
#include "third_party/arrow/arrow_shim.h"

namespace parasol {

// Appends a column's values of row number `row`, below the length of `array`,
// to the record that `records` has begun. A null is a missing value, and so is
// a list that is null or empty; a null in a list is a missing value of the
// list. Booleans become 0 and 1, float16 becomes float32, and decimals become
// the float64 next to them. `type` is the array's, and readable.
//   DataLoss  an offset or a dictionary's index points to outside of the array.
absl::Status AppendColumn(const ArrowType& type, const ArrowArray& array,
                          int64_t row, ValueRecordWriter& records);

}  // namespace parasol

#endif  // PARASOL_ML_INPUT_ARROW_COLUMN_VALUES_H_
