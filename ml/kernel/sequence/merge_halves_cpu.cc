#include <cstdint>

#include "ml/kernel/sequence/merge_halves.h"

namespace parasol::cpu {

absl::Status MergeHalves(Device& /*device*/, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = both + row * 2 * columns;
    const float* const b = a + columns;
    float* const to = y + row * columns;
    for (int64_t i = 0; i < columns; ++i) {
      switch (merge) {
        case HalvesMerge::kSum:
          to[i] = a[i] + b[i];
          break;
        case HalvesMerge::kProduct:
          to[i] = a[i] * b[i];
          break;
        case HalvesMerge::kAverage:
          to[i] = (a[i] + b[i]) / 2;
          break;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status MergeHalvesGradient(Device& /*device*/, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = both + row * 2 * columns;
    const float* const b = a + columns;
    const float* const from = dy + row * columns;
    float* const da = dboth + row * 2 * columns;
    float* const db = da + columns;
    for (int64_t i = 0; i < columns; ++i) {
      switch (merge) {
        case HalvesMerge::kSum:
          da[i] = db[i] = from[i];
          break;
        case HalvesMerge::kProduct:
          da[i] = from[i] * b[i];
          db[i] = from[i] * a[i];
          break;
        case HalvesMerge::kAverage:
          da[i] = db[i] = from[i] / 2;
          break;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
