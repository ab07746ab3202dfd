#ifndef PARASOL_ML_LAYER_SEQUENCE_SEQUENCE_MASK_H_
#define PARASOL_ML_LAYER_SEQUENCE_SEQUENCE_MASK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"

namespace parasol {

// End of the name of a sequence's mask, behind the input's name.
inline constexpr absl::string_view kMaskSuffix = ".mask";

// The mask of a sequence of ids: [its steps], 1 for a step with an id and 0 for
// an empty one. It is no kind of a job's layers: a graph makes it of the input
// whose mask a layer reads. Passes read RowsView::offsets alone.
//   InvalidArgument  the input is not one sequence of ids.
absl::StatusOr<std::unique_ptr<const Layer>> MakeSequenceMask(
    absl::Span<const LayerInput> inputs);

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_SEQUENCE_SEQUENCE_MASK_H_
