#ifndef PARASOL_ML_MODEL_INPUT_VIEWS_H_
#define PARASOL_ML_MODEL_INPUT_VIEWS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace parasol {

// The ids of an id input, as in IdFeature, in memory of someone else.
struct IdsView {
  absl::Span<const int32_t> offsets;  // [size + 1], from 0
  absl::Span<const uint64_t> ids;
  absl::Span<const float> weights = {};  // one for each id; empty: all 1
};

// Inputs of a graph for some examples, in memory of someone else.
struct InputViews {
  int64_t size = 0;  // number of examples
  // The graph's dense inputs, [size, shape...] each, and its id inputs.
  absl::Span<const absl::Span<const float>> dense = {};
  absl::Span<const IdsView> ids = {};
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_INPUT_VIEWS_H_
