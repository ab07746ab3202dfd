#include <algorithm>

#include "ml/optimizer/device/swap_rows.h"

namespace parasol::cpu {

absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer) {
  for (int64_t i = 0; i < count; ++i) {
    float* const other = buffer + rows[i].begin;
    std::swap_ranges(other, other + rows[i].floats, rows[i].row);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
