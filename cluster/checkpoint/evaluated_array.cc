#include "cluster/checkpoint/evaluated_array.h"

#include <cstdint>

#include "base/status_macros.h"
#include "ml/optimizer/assigned/averaged.h"
#include "storage/shard_entry.h"

namespace parasol {

int EvaluatedArray(const durable::CheckpointVariable& variable) {
  const int slots = variable.slot_size();
  const bool has_average =
      slots > 0 && variable.slot(slots - 1) == kAverageSlot;
  return has_average ? slots : kValueArray;
}

absl::Status ReadEvaluated(const CheckpointReader& checkpoint,
                           absl::string_view variable, absl::Span<float> out) {
  for (const auto& of_manifest : checkpoint.manifest().variable()) {
    if (of_manifest.name() != variable) continue;
    const int array = EvaluatedArray(of_manifest);
    if (array == kValueArray) break;
    ASSIGN_OR_RETURN(
        const int64_t updates,
        checkpoint.ReadElements(variable, array, /*first=*/0, out));
    if (updates > 0) return absl::OkStatus();
  }
  return checkpoint.ReadElements(variable, kValueArray, /*first=*/0, out)
      .status();
}

}  // namespace parasol
