#include "ml/kernel/sequence/merge_halves.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status MergeHalves(Device& device, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y) {
  return PARASOL_DISPATCH(device,
                          MergeHalves(device, merge, rows, columns, both, y));
}

absl::Status MergeHalvesGradient(Device& device, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth) {
  return PARASOL_DISPATCH(
      device,
      MergeHalvesGradient(device, merge, rows, columns, both, dy, dboth));
}

}  // namespace parasol
