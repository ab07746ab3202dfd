#ifndef PARASOL_ML_DEVICE_PARALLEL_H_
#define PARASOL_ML_DEVICE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "ml/device/device.h"

namespace parasol {

// How many parts ParallelFor() makes of `size` elements, each (but the last) of
// at least `grain`: at most the threads of the device, which is a CpuDevice.
int64_t PartsOf(Device& device, int64_t size, int64_t grain);

// Calls body(part, begin, end) for each part of [0, size), in any order, on the
// device's threads, and returns when all are done. Which elements a part has
// depends on its number and on size and parts only. `grain` is what one thread
// does in some 10 µs: for less, waking another one costs more than it brings.
void ParallelFor(
    Device& device, int64_t size, int64_t grain,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> body);

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_PARALLEL_H_
