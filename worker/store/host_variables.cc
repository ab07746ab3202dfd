#include "worker/store/host_variables.h"

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
  variables->Allocate();
  return variables;
}

std::unique_ptr<HostVariables> HostVariables::CreateLike(
    const StoredVariables& other) {
  std::unique_ptr<HostVariables> variables(new HostVariables(other.specs()));
  variables->UseOptimizersOf(other);
  variables->Allocate();
  return variables;
}

void HostVariables::Allocate() {
  for (size_t i = 0; i < specs().size(); ++i) {
    const std::vector<float> array(specs()[i].elements());
    arrays_.emplace_back(num_arrays(i), array);
  }
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

void HostVariables::Apply(size_t variable, size_t first,
                          absl::Span<const float> gradient) {
  std::vector<std::vector<float>>& arrays = arrays_[variable];
  CHECK_LE(first + gradient.size(), arrays[kValueArray].size());
  CHECK(!optimizer(variable).needs_whole_variable() ||
        gradient.size() == arrays[kValueArray].size())
      << "a part of " << specs()[variable].name;
  float* const value = arrays[kValueArray].data() + first;
  std::vector<float*> slots;
  for (size_t i = 1; i < arrays.size(); ++i) {
    slots.push_back(arrays[i].data() + first);
  }
  optimizer(variable).Apply(
      updates()[variable],
      {.count = gradient.size(),
       .gradient = reinterpret_cast<const std::byte*>(gradient.data()),
       .value = value,
       .new_value = value,
       .slots = slots});
}

}  // namespace parasol
