#include "worker/store/mirrored_variables.h"

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<MirroredVariables>> MirroredVariables::Create(
    std::vector<VariableSpec> specs, const job::Job& job,
    std::vector<DeviceVariables::Place> places, Way way) {
  std::vector<Device*> devices;
  for (const DeviceVariables::Place& place : places) {
    devices.push_back(place.device);
  }
  std::unique_ptr<MirroredVariables> mirrored(
      new MirroredVariables(std::move(specs), std::move(places)));
  ASSIGN_OR_RETURN(
      mirrored->group_,
      DeviceGroup::Create(std::move(devices), {.nccl = way == Way::kNccl}));
  RETURN_IF_ERROR(mirrored->UseOptimizers(job));
  std::vector<absl::Span<float>> gradients;
  for (const DeviceVariables::Place& place : mirrored->places_) {
    gradients.push_back(place.training->AllGradients());
  }
  ASSIGN_OR_RETURN(
      mirrored->means_,
      GradientMeans::Create(*mirrored->group_, std::move(gradients), way));
  return mirrored;
}

MirroredVariables::~MirroredVariables() {
  if (group_ != nullptr) group_->Synchronize().IgnoreError();
}

absl::Status MirroredVariables::UseOptimizers(const job::Job& job) {
  // There may not be memory for both.
  variables_.reset();
  ASSIGN_OR_RETURN(variables_, DeviceVariables::Create(specs_, job, places_));
  return absl::OkStatus();
}

absl::Status MirroredVariables::Update(absl::Span<const DevicePart> parts) {
  RETURN_IF_ERROR(means_->Enqueue(parts)) << "sum of gradients";
  return variables_->Update();
}

}  // namespace parasol
