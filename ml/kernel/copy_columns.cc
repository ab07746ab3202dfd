#include "ml/kernel/copy_columns.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride) {
  return PARASOL_DISPATCH(device, CopyColumns(device, rows, columns, from,
                                              from_stride, to, to_stride));
}

}  // namespace parasol
