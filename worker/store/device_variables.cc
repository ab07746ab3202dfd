#include "worker/store/device_variables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<DeviceVariables>> DeviceVariables::Create(
    std::vector<VariableSpec> specs, const job::Job& job,
    const std::vector<Place>& places) {
  CHECK(!places.empty());
  std::unique_ptr<DeviceVariables> variables(
      new DeviceVariables(std::move(specs)));
  RETURN_IF_ERROR(variables->MakeOptimizers(job));
  variables->MakeGroups();
  for (const Place& place : places) {
    RETURN_IF_ERROR(variables->AddCopy(job, place));
  }
  return variables;
}

void DeviceVariables::MakeGroups() {
  std::map<const Optimizer*, size_t> groups;
  for (size_t i = 0; i < specs().size(); ++i) {
    if (specs()[i].frozen) continue;
    const auto [group, is_new] = groups.emplace(&optimizer(i), groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[group->second].push_back(i);
  }
}

absl::Status DeviceVariables::AddCopy(const job::Job& job, const Place& place) {
  Copy copy = {.device = place.device, .mutex = place.mutex, .of_model = {}};
  ASSIGN_OR_RETURN(copy.of_model, place.training->Variables());
  CHECK_EQ(copy.of_model.size(), specs().size());
  RETURN_IF_ERROR(AddArrays(copy));
  for (const Group& group : groups_) {
    RETURN_IF_ERROR(AddUpdate(
        group, OptimizerOfVariable(specs()[group.front()].name, job), copy));
  }
  copies_.push_back(std::move(copy));
  return absl::OkStatus();
}

absl::Status DeviceVariables::AddArrays(Copy& copy) {
  int64_t largest = 0;
  for (size_t i = 0; i < specs().size(); ++i) {
    const VariableSpec& spec = specs()[i];
    largest = std::max(largest, spec.elements());
    std::vector<float*>& arrays =
        copy.arrays.emplace_back(1, copy.of_model[i].value);
    for (int array = 1; array < num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(Array<float> slot,
                       copy.device->NewArray<float>(spec.elements()));
      arrays.push_back(slot.data());
      copy.slots.push_back(std::move(slot));
    }
  }
  ASSIGN_OR_RETURN(copy.on_host, copy.device->NewHostArray<float>(largest));
  return absl::OkStatus();
}

absl::Status DeviceVariables::AddUpdate(const Group& group,
                                        const job::Optimizer& limits,
                                        Copy& copy) {
  std::vector<DenseUpdate::Variable> members;
  for (const size_t i : group) {
    DenseUpdate::Variable member = {.count = specs()[i].elements(),
                                    .gradient = copy.of_model[i].gradient,
                                    .value = copy.of_model[i].value};
    const std::vector<float*>& arrays = copy.arrays[i];
    std::copy(arrays.begin() + 1, arrays.end(), member.slots.begin());
    members.push_back(member);
  }
  const size_t first = group.front();
  ASSIGN_OR_RETURN(
      copy.updates.emplace_back(),
      DenseUpdate::Create(*copy.device, optimizer(first),
                          specs()[first].trained ? limits : job::Optimizer(),
                          std::move(members)));
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> DeviceVariables::Read(size_t variable,
                                                              int array) {
  const Copy& copy = copies_.front();
  const absl::MutexLockMaybe lock(copy.mutex);
  const absl::Span<const float> elements(copy.arrays[variable][array],
                                         specs()[variable].elements());
  RETURN_IF_ERROR(copy.device->Copy(Device::Stream::kCompute, elements,
                                    copy.on_host.data()));
  RETURN_IF_ERROR(copy.device->Synchronize());
  return copy.on_host.span().first(elements.size());
}

absl::Status DeviceVariables::Write(size_t variable, int array,
                                    absl::Span<const float> elements) {
  CHECK_EQ(static_cast<int64_t>(elements.size()), specs()[variable].elements());
  for (Copy& copy : copies_) {
    RETURN_IF_ERROR(Write(copy, variable, array, elements));
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::Write(Copy& copy, size_t variable, int array,
                                    absl::Span<const float> elements) {
  const absl::MutexLockMaybe lock(copy.mutex);
  std::copy(elements.begin(), elements.end(), copy.on_host.data());
  const absl::Span<const float> from =
      copy.on_host.span().first(elements.size());
  RETURN_IF_ERROR(copy.device->Copy(Device::Stream::kCompute, from,
                                    copy.arrays[variable][array]));
  return copy.device->Synchronize();
}

absl::Status DeviceVariables::Update() {
  for (size_t group = 0; group < groups_.size(); ++group) {
    RETURN_IF_ERROR(Update(group)) << "update of variables";
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::Update(size_t group) {
  std::vector<int64_t> iterations;
  for (const size_t variable : groups_[group]) {
    iterations.push_back(updates()[variable]);
    CountUpdate(variable);
  }
  for (Copy& copy : copies_) {
    RETURN_IF_ERROR(copy.updates[group]->Apply(iterations));
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::Await() {
  absl::Status first;
  for (Copy& copy : copies_) first.Update(copy.device->Synchronize());
  return first;
}

}  // namespace parasol
