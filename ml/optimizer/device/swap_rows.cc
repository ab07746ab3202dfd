#include "ml/optimizer/device/swap_rows.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer) {
  return PARASOL_DISPATCH(device, SwapRows(device, rows, count, buffer));
}

}  // namespace parasol
