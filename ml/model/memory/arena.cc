#include "ml/model/memory/arena.h"

#include <algorithm>
#include <numeric>

namespace parasol {
namespace {

bool MeetInTime(const ArenaBlock& a, const ArenaBlock& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

ArenaLayout LayOut(absl::Span<const ArenaBlock> blocks) {
  ArenaLayout layout = {.offsets = std::vector<int64_t>(blocks.size())};
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return blocks[a].size > blocks[b].size;
  });
  std::vector<size_t> placed;  // sorted by offset
  for (const size_t block : order) {
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!MeetInTime(blocks[block], blocks[other])) continue;
      if (offset + blocks[block].size <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + blocks[other].size);
    }
    layout.offsets[block] = offset;
    layout.size = std::max(layout.size, offset + blocks[block].size);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [&](size_t a, size_t b) {
                                     return layout.offsets[a] <
                                            layout.offsets[b];
                                   }),
                  block);
  }
  return layout;
}

}  // namespace parasol
