#include "worker/local/local_variables.h"

#include <utility>

#include "base/status_macros.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/plain_subtraction.h"
#include "storage/shard_entry.h"

namespace parasol {

LocalVariables::LocalVariables(std::vector<VariableSpec> specs)
    : specs_(std::move(specs)), updates_(specs_.size()) {}

absl::Status LocalVariables::MakeOptimizers(const job::Job& job) {
  ASSIGN_OR_RETURN(of_trained_, MakeOptimizer(job.optimizer()));
  ASSIGN_OR_RETURN(of_others_, MakeOptimizer(PlainSubtraction()));
  return absl::OkStatus();
}

absl::Status LocalVariables::Initialize(uint64_t seed) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const VariableSpec& spec = specs_[i];
    std::vector<float> elements(spec.elements());
    RETURN_IF_ERROR(parasol::Initialize(spec.initializer, seed, spec.name,
                                        spec.shape, /*first=*/0,
                                        absl::MakeSpan(elements)))
        << spec.name;
    RETURN_IF_ERROR(Write(i, kValueArray, elements)) << spec.name;
    for (int array = 1; array < num_arrays(i); ++array) {
      elements.assign(elements.size(),
                      optimizer(i).InitialSlotValue(array - 1));
      RETURN_IF_ERROR(Write(i, array, elements)) << spec.name;
    }
    updates_[i] = 0;
  }
  return absl::OkStatus();
}

}  // namespace parasol
