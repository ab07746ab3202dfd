#include "ml/model/variable_memory.h"

#include <utility>

#include "base/status_macros.h"

namespace parasol {

absl::StatusOr<VariableMemory> VariableMemory::Create(const Graph& graph,
                                                      Device& device) {
  VariableMemory memory(device);
  memory.layout_ = LayOutVariables(graph);
  const size_t variables = graph.variables.size();
  for (const VariableSpec& variable : graph.variables) {
    memory.elements_.push_back(variable.elements());
  }
  for (Array<float>& side : memory.host_values_) {
    ASSIGN_OR_RETURN(side, device.NewHostArray<float>(memory.layout_.size()),
                     _ << "the variables' values");
  }
  if (!device.shares_host_memory()) {
    ASSIGN_OR_RETURN(memory.device_values_,
                     device.NewArray<float>(memory.layout_.size()),
                     _ << "the variables' values");
  }
  memory.next_side_.assign(variables, 0);
  memory.is_uploaded_.assign(variables, false);
  memory.uploaded_.assign(memory.layout_.pieces.size(), 0);
  const Array<float>& read = device.shares_host_memory()
                                 ? memory.host_values_[1]
                                 : memory.device_values_;
  for (size_t i = 0; i < variables; ++i) {
    memory.values_.push_back(memory.Part(read, i).data());
  }
  return memory;
}

absl::Span<float> VariableMemory::HostValue(size_t index) {
  return Part(host_values_[next_side_[index]], index);
}

// A caller may overtake the copy from the array that it writes next only when
// it uploaded twice without a pass between; then the second copy, behind it in
// the stream, replaces what the first one brought.
absl::Status VariableMemory::Upload(size_t index) {
  const int written = std::exchange(next_side_[index], 1 - next_side_[index]);
  if (device_->shares_host_memory()) {
    values_[index] = Part(host_values_[written], index).data();
    return absl::OkStatus();
  }
  if (is_uploaded_[index]) return absl::OkStatus();
  is_uploaded_[index] = true;
  const size_t piece = layout_.piece_of[index];
  const VariableRange& range = layout_.pieces[piece];
  if (++uploaded_[piece] < range.end - range.begin) return absl::OkStatus();
  return CopyValues(range);
}

absl::Status VariableMemory::FinishUploads() {
  for (const VariableRange& piece : layout_.pieces) {
    RETURN_IF_ERROR(CopyValues(piece));
  }
  return absl::OkStatus();
}

// Takes uploaded neighbours that lie on one side in one copy: mostly all.
absl::Status VariableMemory::CopyValues(const VariableRange& piece) {
  size_t& left = uploaded_[layout_.piece_of[piece.begin]];
  size_t end = piece.begin;
  while (left > 0) {
    size_t first = end;
    while (!is_uploaded_[first]) ++first;
    const int next = next_side_[first];
    for (end = first;
         end < piece.end && is_uploaded_[end] && next_side_[end] == next;
         ++end) {
      is_uploaded_[end] = false;
      --left;
    }
    const int64_t begin = layout_.offsets[first];
    RETURN_IF_ERROR(
        device_->Copy(Device::Stream::kCopyIn,
                      absl::MakeConstSpan(host_values_[1 - next].data() + begin,
                                          layout_.offsets[end] - begin),
                      device_values_.data() + begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DeviceTraining::Variable>>
VariableMemory::OnDevice() {
  has_host_arrays_ = false;
  host_values_ = {};
  if (gradients_.empty()) {
    RETURN_IF_ERROR(AllocateGradients());
  }
  std::vector<DeviceTraining::Variable> variables;
  for (size_t i = 0; i < elements_.size(); ++i) {
    variables.push_back(
        {.value = Part(device_values_, i).data(), .gradient = gradients_[i]});
  }
  return variables;
}

absl::Status VariableMemory::AllocateGradients() {
  for (Array<float>& side : host_gradients_) {
    if (!has_host_arrays_) break;
    ASSIGN_OR_RETURN(side, device_->NewHostArray<float>(layout_.size()));
  }
  if (device_->shares_host_memory()) {
    gradients_.resize(elements_.size());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(device_gradients_, device_->NewArray<float>(layout_.size()));
  while (fetched_.size() < layout_.pieces.size()) {
    ASSIGN_OR_RETURN(fetched_.emplace_back(), device_->NewEvent());
  }
  for (size_t i = 0; i < elements_.size(); ++i) {
    gradients_.push_back(Part(device_gradients_, i).data());
  }
  return absl::OkStatus();
}

absl::Status VariableMemory::NextGradients() {
  if (gradients_.empty()) {
    RETURN_IF_ERROR(AllocateGradients());
  }
  gradient_side_ = 1 - gradient_side_;
  if (!device_->shares_host_memory()) return absl::OkStatus();
  for (size_t i = 0; i < gradients_.size(); ++i) {
    gradients_[i] = Part(host_gradients_[gradient_side_], i).data();
  }
  return absl::OkStatus();
}

absl::Status VariableMemory::FetchGradients(const VariableRange& piece) {
  if (device_->shares_host_memory()) return absl::OkStatus();
  const int64_t begin = layout_.offsets[piece.begin];
  RETURN_IF_ERROR(
      device_->Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(
      device_->Copy(Device::Stream::kCopyOut,
                    absl::MakeConstSpan(device_gradients_.data() + begin,
                                        layout_.offsets[piece.end] - begin),
                    host_gradients_[gradient_side_].data() + begin));
  return device_->Record(Device::Stream::kCopyOut,
                         *fetched_[layout_.piece_of[piece.begin]]);
}

absl::Status VariableMemory::AwaitGradients(const VariableRange& piece) {
  if (device_->shares_host_memory()) return absl::OkStatus();
  return device_->Wait(*fetched_[layout_.piece_of[piece.begin]]);
}

absl::Span<const float> VariableMemory::HostGradient(size_t index) const {
  return Part(host_gradients_[gradient_side_], index);
}

}  // namespace parasol
