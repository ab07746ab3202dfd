#include "ml/model/variable_memory.h"

#include <utility>

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<VariableMemory> VariableMemory::Create(
    const std::vector<VariableSpec>& variables, Device& device) {
  VariableMemory memory(device);
  for (const VariableSpec& variable : variables) {
    RETURN_IF_ERROR(memory.AddValue(variable.elements())) << variable.name;
  }
  return memory;
}

absl::Status VariableMemory::AddValue(size_t elements) {
  Value value;
  for (int side : {0, 1}) {
    ASSIGN_OR_RETURN(value.host[side], device_->NewHostArray<float>(elements));
  }
  if (device_->shares_host_memory()) {
    values_.push_back(value.host[1].data());
  } else {
    ASSIGN_OR_RETURN(value.device, device_->NewArray<float>(elements));
    values_.push_back(value.device.data());
  }
  value_memory_.push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status VariableMemory::AddGradient(size_t elements) {
  Gradient gradient;
  for (int side : {0, 1}) {
    if (!has_host_arrays_) break;
    ASSIGN_OR_RETURN(gradient.host[side],
                     device_->NewHostArray<float>(elements));
  }
  ASSIGN_OR_RETURN(gradient.fetched, device_->NewEvent());
  if (!device_->shares_host_memory()) {
    ASSIGN_OR_RETURN(gradient.device, device_->NewArray<float>(elements));
  }
  gradients_.push_back(gradient.device.data());
  gradient_memory_.push_back(std::move(gradient));
  return absl::OkStatus();
}

absl::Span<float> VariableMemory::HostValue(size_t index) {
  Value& value = value_memory_[index];
  return value.host[value.next].span();
}

// A caller may overtake the copy from the array that it writes next only when
// it uploaded twice without a pass between; then the second copy, behind it in
// the stream, replaces what the first one brought.
absl::Status VariableMemory::Upload(size_t index) {
  Value& value = value_memory_[index];
  const Array<float>& written = value.host[value.next];
  value.next = 1 - value.next;
  if (device_->shares_host_memory()) {
    values_[index] = written.data();
    return absl::OkStatus();
  }
  return device_->Copy(Device::Stream::kCopyIn,
                       absl::Span<const float>(written.span()),
                       value.device.data());
}

absl::Status VariableMemory::AddGradients() {
  while (gradient_memory_.size() < value_memory_.size()) {
    const Value& value = value_memory_[gradient_memory_.size()];
    RETURN_IF_ERROR(AddGradient(value.host[0].size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeviceTraining::Variable>>
VariableMemory::OnDevice() {
  has_host_arrays_ = false;
  RETURN_IF_ERROR(AddGradients());
  std::vector<DeviceTraining::Variable> variables;
  for (size_t i = 0; i < value_memory_.size(); ++i) {
    value_memory_[i].host = {};
    variables.push_back({.value = value_memory_[i].device.data(),
                         .gradient = gradient_memory_[i].device.data()});
  }
  return variables;
}

absl::Status VariableMemory::NextGradients() {
  RETURN_IF_ERROR(AddGradients());
  gradient_side_ = 1 - gradient_side_;
  if (!device_->shares_host_memory()) return absl::OkStatus();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    gradients_[i] = gradient_memory_[i].host[gradient_side_].data();
  }
  return absl::OkStatus();
}

absl::Status VariableMemory::FetchGradient(size_t index) {
  if (device_->shares_host_memory()) return absl::OkStatus();
  Gradient& gradient = gradient_memory_[index];
  RETURN_IF_ERROR(
      device_->Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(device_->Copy(Device::Stream::kCopyOut,
                                absl::Span<const float>(gradient.device.span()),
                                gradient.host[gradient_side_].data()));
  return device_->Record(Device::Stream::kCopyOut, *gradient.fetched);
}

absl::StatusOr<absl::Span<const float>> VariableMemory::AwaitGradient(
    size_t index) {
  Gradient& gradient = gradient_memory_[index];
  RETURN_IF_ERROR(device_->Wait(*gradient.fetched));
  return gradient.host[gradient_side_].span();
}

}  // namespace parasol
