#include "third_party/cuda_on_host/counts.h"

#include <mutex>

#include "third_party/cuda_on_host/runtime.h"

namespace cuda_on_host {

Counts& TheCounts() {
  static Counts counts;
  return counts;
}

Counts CountsSoFar() {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  return TheCounts();
}

}  // namespace cuda_on_host
