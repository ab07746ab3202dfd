#ifndef PARASOL_ML_OPTIMIZER_DEVICE_SWAP_ROWS_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_SWAP_ROWS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ml/device/device.h"

namespace parasol {

// A row with its slots, and the place in a buffer of what it is swapped with.
struct SwappedRow {
  float* row;       // address in the device's memory
  uint32_t begin;   // index of the first element in the buffer
  uint32_t floats;  // number of elements
};

// Swaps each of `count` rows with its place in `buffer`. Neither rows nor
// places overlap. The list `rows` and the buffer are in the device's memory.
// Enqueues one kernel on the compute stream, or none if there are no rows, and
// returns.
//   Unavailable  the device was lost.
absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer);
}  // namespace cpu

namespace cuda {
absl::Status SwapRows(Device& device, const SwappedRow* rows, int64_t count,
                      float* buffer);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_SWAP_ROWS_H_
