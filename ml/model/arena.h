#ifndef PARASOL_ML_MODEL_ARENA_H_
#define PARASOL_ML_MODEL_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace parasol {

// Memory that is in use from time `first` to time `last`.
struct ArenaBlock {
  int64_t size = 0;
  size_t first = 0;
  size_t last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // by block
  int64_t size = 0;
};

// Places for blocks in one array, where those that are in use at the same time
// do not overlap: the largest first, each as low as it fits.
ArenaLayout LayOut(absl::Span<const ArenaBlock> blocks);

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_ARENA_H_
