#include "ml/input/file/set_memory.h"

#include <algorithm>

#include "base/resource_limits.h"
#include "ml/input/file/available_memory.h"

namespace parasol {
namespace {

constexpr uint64_t kShareOfMemory = 8;
// A set that is in memory however little is free.
constexpr uint64_t kSmallSetBytes = 16 << 20;
// What is taken to be free where the system does not say.
constexpr int64_t kAssumedMemory = int64_t{1} << 30;

uint64_t FreeMemory() {
  return static_cast<uint64_t>(AvailableMemory().value_or(kAssumedMemory));
}

}  // namespace

uint64_t MostInMemory(const SetMemory& memory) {
  if (memory.whole.has_value()) return *memory.whole;
  return std::max(kSmallSetBytes, FreeMemory() / kShareOfMemory);
}

size_t LeastCache(const SetMemory& memory) {
  if (memory.whole.has_value()) return memory.cache_bytes;
  return std::min<size_t>(memory.cache_bytes, FreeMemory() / 2);
}

uint64_t MemoryOfSet(const SetMemory& memory, uint64_t bytes) {
  return bytes <= MostInMemory(memory) ? bytes : LeastCache(memory);
}

bool KeepsDescriptor(size_t file) {
  constexpr int64_t kShareOfDescriptors = 4;
  return static_cast<int64_t>(file) < DescriptorLimit() / kShareOfDescriptors;
}

}  // namespace parasol
