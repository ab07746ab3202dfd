#include "ml/model/function/variable_copies.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"

namespace parasol {

VariableCopies::VariableCopies(const Graph& graph, Device& device,
                               VariableMemory memory)
    : device_(device),
      memory_(std::move(memory)),
      sent_(graph.variables.size()) {
  for (const VariableSpec& variable : graph.variables) {
    const bool is_changed = !variable.trained && !variable.frozen;
    change_offsets_.push_back(is_changed ? change_elements_ : kNone);
    if (is_changed) change_elements_ += AlignedElements(variable.elements());
  }
}

absl::StatusOr<std::unique_ptr<VariableCopies>> VariableCopies::Create(
    const Graph& graph, Device& device) {
  ASSIGN_OR_RETURN(VariableMemory memory,
                   VariableMemory::Create(graph, device));
  return std::unique_ptr<VariableCopies>(
      new VariableCopies(graph, device, std::move(memory)));
}

// From pinned memory, as the caller's is not.
absl::Status VariableCopies::Send(const Lent& lent) {
  absl::Status status;
  for (size_t i = 0; i < sent_.size() && status.ok(); ++i) {
    if (sent_[i] == lent.versions[i]) continue;
    sent_[i] = lent.versions[i];
    std::copy(lent.values[i].begin(), lent.values[i].end(),
              memory_.HostValue(i).begin());
    status = memory_.Upload(i);
  }
  status.Update(memory_.FinishUploads());
  // Nobody knows what has arrived.
  if (!status.ok()) std::fill(sent_.begin(), sent_.end(), 0);
  return status;
}

absl::StatusOr<absl::Span<float* const>> VariableCopies::Changes() {
  if (!changes_.empty()) return changes_;
  RETURN_IF_ERROR(GrowOnHost(device_, change_elements_, changes_on_host_));
  RETURN_IF_ERROR(Grow(device_, change_elements_, changes_on_device_));
  ASSIGN_OR_RETURN(fetched_, device_.NewEvent());
  for (const int64_t offset : change_offsets_) {
    changes_.push_back(offset == kNone ? nullptr
                                       : changes_on_device_.data() + offset);
  }
  return changes_;
}

absl::Status VariableCopies::FetchChanges(
    absl::Span<const absl::Span<float>> changes) {
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCopyOut,
                   absl::Span<const float>(changes_on_device_.span()),
                   changes_on_host_.data()));
  RETURN_IF_ERROR(device_.Record(Device::Stream::kCopyOut, *fetched_));
  RETURN_IF_ERROR(device_.Wait(*fetched_));
  for (size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].empty()) continue;
    std::copy_n(changes_on_host_.data() + change_offsets_[i], changes[i].size(),
                changes[i].begin());
  }
  return absl::OkStatus();
}

}  // namespace parasol
