#include "worker/store/stored_variables.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "ml/initializer/initializer.h"
#include "ml/optimizer/assigned/averaged.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/assigned/plain_subtraction.h"
#include "storage/shard_entry.h"

namespace parasol {

StoredVariables::StoredVariables(std::vector<VariableSpec> specs)
    : specs_(std::move(specs)), updates_(specs_.size()) {}

absl::Status StoredVariables::MakeOptimizers(const job::Job& job) {
  optimizers_.clear();
  std::map<std::string, std::shared_ptr<const Optimizer>> distinct;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Optimizer> of_others,
                   MakeOptimizer(PlainSubtraction()));
  for (const VariableSpec& spec : specs_) {
    if (!spec.trained) {
      optimizers_.push_back(of_others);
      continue;
    }
    const job::Optimizer own =
        VariableOptimizerOf(OptimizerOfVariable(spec.name, job), spec.name,
                            spec.learning_rate_multiplier);
    std::shared_ptr<const Optimizer>& optimizer =
        distinct[own.SerializeAsString()];
    if (optimizer == nullptr) {
      ASSIGN_OR_RETURN(optimizer, MakeVariableOptimizer(own));
      RETURN_IF_ERROR(optimizer->CheckCode()) << "optimizer";
    }
    optimizers_.push_back(optimizer);
  }
  return absl::OkStatus();
}

absl::Status StoredVariables::Initialize(uint64_t seed) {
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

absl::Status StoredVariables::SwapAverages() {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const std::vector<std::string>& slots = optimizer(i).slot_names();
    if (updates_[i] == 0 || slots.empty() || slots.back() != kAverageSlot) {
      continue;
    }
    const int average = num_arrays(i) - 1;
    ASSIGN_OR_RETURN(absl::Span<const float> read, Read(i, kValueArray));
    const std::vector<float> values(read.begin(), read.end());
    ASSIGN_OR_RETURN(read, Read(i, average));
    const std::vector<float> averages(read.begin(), read.end());
    RETURN_IF_ERROR(Write(i, kValueArray, averages)) << specs_[i].name;
    RETURN_IF_ERROR(Write(i, average, values)) << specs_[i].name;
  }
  return absl::OkStatus();
}

}  // namespace parasol
