#ifndef PARASOL_ML_DEVICE_PARALLEL_H_
#define PARASOL_ML_DEVICE_PARALLEL_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "ml/device/device.h"

namespace parasol {

// Returns the number of parts that ParallelFor() makes of `size` elements: at
// most the number of threads of `device`, which is a CpuDevice. Each part but
// the last has at least `grain` elements.
int64_t PartsOf(Device& device, int64_t size, int64_t grain);

// Calls body(part, begin, end) for each part of [0, size), in any order, on the
// device's threads, and returns when all calls are done. The elements of a part
// depend only on its number, on `size` and on the number of parts. `grain` is
// the number of elements that one thread processes in some 10 µs: for fewer,
// waking another thread costs more than it saves.
void ParallelFor(
    Device& device, int64_t size, int64_t grain,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> body);

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_PARALLEL_H_
