#include "ml/device/parallel.h"

#include <algorithm>

#include "ml/device/cpu_device.h"

namespace parasol {
namespace {

int ThreadsOf(Device& device) {
  return static_cast<CpuDevice&>(device).threads();
}

}  // namespace

int64_t PartsOf(Device& device, int64_t size, int64_t grain) {
  return std::clamp<int64_t>(size / std::max<int64_t>(grain, 1), 1,
                             ThreadsOf(device));
}

// The team has all threads, also those without a part: libgomp ends what
// threads a smaller one leaves over, and starts them again for the next larger
// one.
void ParallelFor(
    Device& device, int64_t size, int64_t grain,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> body) {
  const int64_t parts = PartsOf(device, size, grain);
  if (parts == 1) return body(0, 0, size);
#pragma omp parallel for num_threads(ThreadsOf(device)) schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    body(part, size * part / parts, size * (part + 1) / parts);
  }
}

}  // namespace parasol
