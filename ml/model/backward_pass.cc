#include "ml/model/backward_pass.h"

#include "base/status_macros.h"

namespace parasol {

absl::Status BackwardPass::Reserve(int64_t examples) {
  if (examples > capacity_) {
    std::vector<ArenaBlock> blocks;
    for (const GradientBuffer& buffer : plan_.buffers) {
      blocks.push_back({.size = AlignedElements(
                            FloatsFor(buffer.type, examples * buffer.elements)),
                        .first = buffer.first_op,
                        .last = buffer.last_op});
    }
    layout_ = LayOut(blocks);
    capacity_ = examples;
  }
  if (static_cast<size_t>(layout_.size) <= memory_.size()) {
    return absl::OkStatus();
  }
  // The old one first, lest both are there at once.
  memory_ = Array<float>();
  ASSIGN_OR_RETURN(memory_, device_.NewArray<float>(layout_.size));
  return absl::OkStatus();
}

}  // namespace parasol
