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

}  // namespace

uint64_t MostInMemory(const SetMemory& memory) {
  if (memory.whole.has_value()) return *memory.whole;
  const auto available =
      static_cast<uint64_t>(AvailableMemory().value_or(kAssumedMemory));
  return std::max(kSmallSetBytes, available / kShareOfMemory);
}

uint64_t MemoryOfSet(const SetMemory& memory, uint64_t bytes) {
  return bytes <= MostInMemory(memory) ? bytes : memory.cache_bytes;
}

bool KeepsDescriptor(size_t file) {
  constexpr int64_t kShareOfDescriptors = 4;
  return static_cast<int64_t>(file) < DescriptorLimit() / kShareOfDescriptors;
}

}  // namespace parasol
