#ifndef PARASOL_ML_LAYER_INTERACTION_DOT_INTERACTION_H_
#define PARASOL_ML_LAYER_INTERACTION_DOT_INTERACTION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/layer/layer.h"
#include "ml/layer/layer_kind.h"
#include "proto/job.pb.h"

namespace parasol {

// The dot products x[f] · x[g] of all pairs f > g of fields of its input x
// [fields, width], and of f = g with self_interaction, in the order (1, 0),
// (2, 0), (2, 1), …: [pairs]. DLRM's interaction.
//   InvalidArgument  the input is not one tensor of two axes, or has no pair.
absl::StatusOr<std::unique_ptr<const Layer>> MakeDotInteraction(
    const job::DotInteraction& spec, absl::Span<const LayerInput> inputs);

// The kind "dot_interaction" of a job's layers.
extern const LayerKind kDotInteractionKind;

}  // namespace parasol

#endif  // PARASOL_ML_LAYER_INTERACTION_DOT_INTERACTION_H_
