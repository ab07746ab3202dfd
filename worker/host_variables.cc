#include "worker/host_variables.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "storage/shard_entry.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<HostVariables>> HostVariables::Create(
    std::vector<VariableSpec> specs, const job::Job& job) {
  std::unique_ptr<HostVariables> variables(new HostVariables(std::move(specs)));
  RETURN_IF_ERROR(variables->MakeOptimizers(job));
  for (size_t i = 0; i < variables->specs().size(); ++i) {
    const std::vector<float> array(variables->specs()[i].elements());
    variables->arrays_.emplace_back(variables->num_arrays(i), array);
  }
  return variables;
}

absl::StatusOr<absl::Span<const float>> HostVariables::Read(size_t variable,
                                                            int array) {
  return arrays_[variable][array];
}

absl::Status HostVariables::Write(size_t variable, int array,
                                  absl::Span<const float> elements) {
  std::vector<float>& to = arrays_[variable][array];
  CHECK_EQ(elements.size(), to.size());
  std::copy(elements.begin(), elements.end(), to.begin());
  return absl::OkStatus();
}

void HostVariables::Apply(size_t variable, absl::Span<const float> gradient) {
  std::vector<std::vector<float>>& arrays = arrays_[variable];
  std::vector<float>& value = arrays[kValueArray];
  CHECK_EQ(gradient.size(), value.size());
  std::vector<float*> slots;
  for (size_t i = 1; i < arrays.size(); ++i) slots.push_back(arrays[i].data());
  optimizer(variable).Apply(
      updates()[variable],
      {.count = value.size(),
       .gradient = reinterpret_cast<const std::byte*>(gradient.data()),
       .value = value.data(),
       .new_value = value.data(),
       .slots = slots});
  CountUpdate(variable);
}

}  // namespace parasol
