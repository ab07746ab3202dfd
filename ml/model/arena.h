#ifndef PARASOL_ML_MODEL_ARENA_H_
#define PARASOL_ML_MODEL_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

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

#endif  // PARASOL_ML_MODEL_ARENA_H_
