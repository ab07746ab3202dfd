#ifndef PARASOL_ML_MODEL_MEMORY_ARENA_H_
#define PARASOL_ML_MODEL_MEMORY_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ml/device/elements.h"

namespace parasol {

// Number of elements at whose multiples arrays begin that share memory: 256
// bytes, as arrays of a CUDA device do. Libraries choose their kernels by that.
inline constexpr int64_t kArenaAlignment = 64;

// Returns the least multiple of kArenaAlignment that is not below `elements`.
constexpr int64_t AlignedElements(int64_t elements) {
  return (elements + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// Returns the number of floats that take as much room as `elements` of the
// type.
inline int64_t FloatsFor(EdgeType type, int64_t elements) {
  constexpr int64_t kBytes = sizeof(float);
  return (elements * BytesOf(type) + kBytes - 1) / kBytes;
}

// Memory that is in use from time `first` to time `last`, both included.
struct ArenaBlock {
  int64_t size = 0;
  size_t first = 0;
  size_t last = 0;
};

struct ArenaLayout {
  // Offset of each block in the array, in the blocks' order.
  std::vector<int64_t> offsets;
  int64_t size = 0;
};

// Places the blocks in one array so that blocks in use at the same time do not
// overlap. Takes the largest block first and puts each as low as it fits.
ArenaLayout LayOut(absl::Span<const ArenaBlock> blocks);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_MEMORY_ARENA_H_
