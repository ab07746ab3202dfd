#include "cluster/checkpoint/evaluated_array.h"

#include <cstdint>

#include "base/status_macros.h"
#include "ml/optimizer/assigned/averaged.h"
#include "storage/shard_entry.h"

namespace parasol {

absl::StatusOr<int> EvaluatedArray(
    const CheckpointReader& checkpoint,
    const durable::CheckpointVariable& variable) {
  const int slots = variable.slot_size();
  const bool has_average =
      slots > 0 && variable.slot(slots - 1) == kAverageSlot;
  if (!has_average) return kValueArray;
  int64_t elements = 1;
  for (const int64_t size : variable.shape()) elements *= size;
  float first = 0;
  ASSIGN_OR_RETURN(
      const int64_t updates,
      checkpoint.ReadElements(variable.name(), slots, /*first=*/0,
                              absl::MakeSpan(&first, elements > 0 ? 1 : 0)));
  return updates > 0 ? slots : kValueArray;
}

absl::Status ReadEvaluated(const CheckpointReader& checkpoint,
                           absl::string_view variable, absl::Span<float> out) {
  int array = kValueArray;
  for (const auto& of_manifest : checkpoint.manifest().variable()) {
    if (of_manifest.name() != variable) continue;
    ASSIGN_OR_RETURN(array, EvaluatedArray(checkpoint, of_manifest));
  }
  return checkpoint.ReadElements(variable, array, /*first=*/0, out).status();
}

}  // namespace parasol
