#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/swap_rows.h"

namespace parasol::cuda {
namespace {

// The lanes of a warp take neighbouring elements of one row.
struct SwappedRows {
  const SwappedRow* rows;
  float* buffer;

  __device__ void operator()(int64_t index, int lane) const {
    const SwappedRow swapped = rows[index];
    float* const other = buffer + swapped.begin;
    for (uint32_t i = lane; i < swapped.floats; i += kWarpSize) {
      const float element = other[i];
      other[i] = swapped.row[i];
      swapped.row[i] = element;
    }
  }
};

}  // namespace

absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer) {
  return ForEachRow(device, "swap of rows", count,
                    SwappedRows{.rows = rows, .buffer = buffer});
}

}  // namespace parasol::cuda
