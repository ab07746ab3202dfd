#include "ml/device/parallel.h"

#include <algorithm>

#include "ml/device/cpu_device.h"

namespace parasol {
namespace {

int ThreadsOf(Device& device) {
  return static_cast<CpuDevice&>(device).threads();
}

// ThreadSanitizer does not see what libgomp orders: that a part begins after
// the call, and that the call returns after all parts. It is told so here, and
// this file's own reads of what the call hands to a part are not looked at.
#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#define PARASOL_UNSEEN __attribute__((no_sanitize("thread")))
void Acquire(void* order) { __tsan_acquire(order); }
void Release(void* order) { __tsan_release(order); }
#else
#define PARASOL_UNSEEN
void Acquire(void* /*order*/) {}
void Release(void* /*order*/) {}
#endif

}  // namespace

int64_t PartsOf(Device& device, int64_t size, int64_t grain) {
  return std::clamp<int64_t>(size / std::max<int64_t>(grain, 1), 1,
                             ThreadsOf(device));
}

// The team has all threads, also those without a part: libgomp ends what
// threads a smaller one leaves over, and starts them again for the next larger
// one.
PARASOL_UNSEEN void ParallelFor(
    Device& device, int64_t size, int64_t grain,
    absl::FunctionRef<void(int64_t part, int64_t begin, int64_t end)> body) {
  const int64_t parts = PartsOf(device, size, grain);
  if (parts == 1) return body(0, 0, size);
  char begun = 0, ended = 0;
  Release(&begun);
#pragma omp parallel for num_threads(ThreadsOf(device)) schedule(static, 1)
  for (int64_t part = 0; part < parts; ++part) {
    Acquire(&begun);
    body(part, size * part / parts, size * (part + 1) / parts);
    Release(&ended);
  }
  Acquire(&ended);
}

}  // namespace parasol
