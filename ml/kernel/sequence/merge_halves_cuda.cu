#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/sequence/merge_halves.h"

namespace parasol::cuda {
namespace {

struct Merged {
  HalvesMerge merge;
  int64_t columns;
  const float* both;
  float* y;
  __device__ void operator()(int64_t i) const {
    const float* const a = both + i / columns * 2 * columns + i % columns;
    const float b = a[columns];
    y[i] = merge == HalvesMerge::kSum       ? *a + b
           : merge == HalvesMerge::kProduct ? *a * b
                                            : (*a + b) / 2;
  }
};

struct MergedGradient {
  HalvesMerge merge;
  int64_t columns;
  const float* both;
  const float* dy;
  float* dboth;
  __device__ void operator()(int64_t i) const {
    const int64_t place = i / columns * 2 * columns + i % columns;
    if (merge == HalvesMerge::kProduct) {
      dboth[place] = dy[i] * both[place + columns];
      dboth[place + columns] = dy[i] * both[place];
      return;
    }
    const float share = merge == HalvesMerge::kSum ? dy[i] : dy[i] / 2;
    dboth[place] = share;
    dboth[place + columns] = share;
  }
};

}  // namespace

absl::Status MergeHalves(Device& device, HalvesMerge merge, int64_t rows,
                         int64_t columns, const float* both, float* y) {
  return ForEach(device, "merge of two directions", rows * columns,
                 Merged{merge, columns, both, y});
}

absl::Status MergeHalvesGradient(Device& device, HalvesMerge merge,
                                 int64_t rows, int64_t columns,
                                 const float* both, const float* dy,
                                 float* dboth) {
  return ForEach(device, "gradient of a merge of two directions",
                 rows * columns,
                 MergedGradient{merge, columns, both, dy, dboth});
}

}  // namespace parasol::cuda
