#include "ml/model/layer_passes.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<absl::Span<const std::unique_ptr<LayerPass>>> LayerPasses::For(
    int64_t examples) {
  const auto known = std::find_if(
      sets_.begin(), sets_.end(),
      [examples](const Set& set) { return set.examples == examples; });
  if (known != sets_.end()) {
    std::rotate(sets_.begin(), known, known + 1);
    return sets_.front().passes;
  }
  // What is thrown away makes room for what comes.
  if (sets_.size() == kMaxSizes) sets_.pop_back();
  Set set = {.examples = examples, .passes = {}};
  for (const PlanStep& step : plan_.steps) {
    ASSIGN_OR_RETURN(set.passes.emplace_back(),
                     step.layer->NewPass(device_, examples),
                     _ << "layer " << step.name);
  }
  sets_.insert(sets_.begin(), std::move(set));
  return sets_.front().passes;
}

}  // namespace parasol
