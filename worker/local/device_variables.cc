#include "worker/local/device_variables.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/job/micro_batches.h"

namespace parasol {

namespace {

// Returns true if an optimizer has code for the host alone.
bool HasCustomOptimizer(const job::Job& job) {
  const auto& tables = job.model().sparse_table();
  return job.optimizer().has_custom() ||
         std::any_of(tables.begin(), tables.end(),
                     [](const job::SparseTable& table) {
                       return table.optimizer().has_custom();
                     });
}

// Returns true if variables may differ in their optimizers.
bool HasExclusions(const job::Optimizer& optimizer) {
  return !optimizer.lamb().exclude_from_weight_decay().empty() ||
         !optimizer.lamb().exclude_from_layer_adaptation().empty();
}

}  // namespace

bool CanUpdateOnDevice(const job::Job& job) {
  if (HasMicroBatches(job) || HasCustomOptimizer(job)) return false;
  if (!job.optimizer().has_global_clipnorm()) return true;
  if (HasExclusions(job.optimizer())) return false;
  const auto& tables = job.model().sparse_table();
  const auto& layers = job.model().layer();
  return std::all_of(
             tables.begin(), tables.end(),
             [](const job::SparseTable& t) { return t.has_optimizer(); }) &&
         std::all_of(layers.begin(), layers.end(), [](const job::Layer& l) {
           return l.learning_rate_multiplier() == 1;
         });
}

absl::StatusOr<std::unique_ptr<DeviceVariables>> DeviceVariables::Create(
    std::vector<VariableSpec> specs, const job::Job& job,
    DeviceTraining& training, Device& device) {
  std::unique_ptr<DeviceVariables> variables(
      new DeviceVariables(std::move(specs), device));
  RETURN_IF_ERROR(variables->MakeOptimizers(job));
  ASSIGN_OR_RETURN(const std::vector<DeviceTraining::Variable> of_model,
                   training.Variables());
  CHECK_EQ(of_model.size(), variables->specs().size());
  RETURN_IF_ERROR(variables->AddArrays(of_model));
  RETURN_IF_ERROR(variables->MakeGroups(job.optimizer(), of_model));
  return variables;
}

absl::Status DeviceVariables::MakeGroups(
    const job::Optimizer& limits,
    absl::Span<const DeviceTraining::Variable> variables) {
  std::set<const Optimizer*> grouped;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (specs()[i].frozen || !grouped.insert(&optimizer(i)).second) continue;
    ASSIGN_OR_RETURN(
        Group group,
        MakeGroup(optimizer(i), specs()[i].trained ? limits : job::Optimizer(),
                  variables));
    groups_.push_back(std::move(group));
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::AddArrays(
    absl::Span<const DeviceTraining::Variable> variables) {
  int64_t largest = 0;
  for (size_t i = 0; i < variables.size(); ++i) {
    const VariableSpec& spec = specs()[i];
    largest = std::max(largest, spec.elements());
    std::vector<float*>& arrays = arrays_.emplace_back(1, variables[i].value);
    for (int array = 1; array < num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(Array<float> slot,
                       device_.NewArray<float>(spec.elements()));
      arrays.push_back(slot.data());
      slots_.push_back(std::move(slot));
    }
  }
  ASSIGN_OR_RETURN(on_host_, device_.NewHostArray<float>(largest));
  return absl::OkStatus();
}

absl::StatusOr<DeviceVariables::Group> DeviceVariables::MakeGroup(
    const Optimizer& optimizer, const job::Optimizer& limits,
    absl::Span<const DeviceTraining::Variable> variables) {
  Group group;
  std::vector<DenseUpdate::Variable> members;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (specs()[i].frozen || &this->optimizer(i) != &optimizer) continue;
    DenseUpdate::Variable member = {.count = specs()[i].elements(),
                                    .gradient = variables[i].gradient,
                                    .value = variables[i].value};
    std::copy(arrays_[i].begin() + 1, arrays_[i].end(), member.slots.begin());
    members.push_back(member);
    group.variables.push_back(i);
  }
  ASSIGN_OR_RETURN(group.update, DenseUpdate::Create(device_, optimizer, limits,
                                                     std::move(members)));
  return group;
}

absl::StatusOr<absl::Span<const float>> DeviceVariables::Read(size_t variable,
                                                              int array) {
  const absl::Span<const float> elements(arrays_[variable][array],
                                         specs()[variable].elements());
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCompute, elements, on_host_.data()));
  RETURN_IF_ERROR(device_.Synchronize());
  return on_host_.span().first(elements.size());
}

absl::Status DeviceVariables::Write(size_t variable, int array,
                                    absl::Span<const float> elements) {
  CHECK_EQ(static_cast<int64_t>(elements.size()), specs()[variable].elements());
  std::copy(elements.begin(), elements.end(), on_host_.data());
  const absl::Span<const float> from = on_host_.span().first(elements.size());
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCompute, from, arrays_[variable][array]));
  return device_.Synchronize();
}

absl::Status DeviceVariables::Update() {
  for (Group& group : groups_) {
    RETURN_IF_ERROR(Update(group)) << "update of variables";
  }
  return absl::OkStatus();
}

absl::Status DeviceVariables::Update(Group& group) {
  std::vector<int64_t> iterations;
  for (const size_t variable : group.variables) {
    iterations.push_back(updates()[variable]);
    CountUpdate(variable);
  }
  return group.update->Apply(iterations);
}

}  // namespace parasol
