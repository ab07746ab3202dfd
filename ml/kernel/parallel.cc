#include "ml/kernel/parallel.h"

#include <algorithm>

#include "ml/kernel/cpu_device.h"

namespace parasol {

int64_t PartsOf(Device& device, int64_t size, int64_t grain) {
  const int64_t threads = static_cast<CpuDevice&>(device).threads();
  return std::clamp<int64_t>(size / std::max<int64_t>(grain, 1), 1, threads);
}

void ParallelFor(
    Device& device, int64_t size, int64_t grain,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> body) {
  const int64_t parts = PartsOf(device, size, grain);
  if (parts == 1) return body(0, 0, size);
#pragma omp parallel for num_threads(parts) schedule(static)
  for (int64_t part = 0; part < parts; ++part) {
    body(part, size * part / parts, size * (part + 1) / parts);
  }
}

}  // namespace parasol
