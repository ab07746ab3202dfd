#include "ml/model/row_gradient_memory.h"

#include "base/status_macros.h"
#include "ml/kernel/zero.h"
#include "ml/model/arena.h"
#include "ml/model/input_array.h"

namespace parasol {

absl::Status RowGradientMemory::Next(absl::Span<const StagedBatch::Rows> rows) {
  if (!has_tables()) return absl::OkStatus();
  side_ = 1 - side_;
  Side& now = sides_[side_];
  for (size_t i = 0; i < rows.size(); ++i) {
    // assign() would grow by as little as it can.
    now.ids[i].clear();
    now.ids[i].insert(now.ids[i].end(), rows[i].ids.begin(), rows[i].ids.end());
    sizes_[i] = rows[i].values.size();
    offsets_[i + 1] = offsets_[i] + AlignedElements(sizes_[i]);
  }
  RETURN_IF_ERROR(GrowOnHost(device_, offsets_.back(), now.host));
  if (!device_.shares_host_memory()) {
    RETURN_IF_ERROR(Grow(device_, offsets_.back(), on_device_));
  }
  if (fetched_ == nullptr) {
    ASSIGN_OR_RETURN(fetched_, device_.NewEvent());
  }
  return absl::OkStatus();
}

absl::Status RowGradientMemory::Clear() {
  if (!has_tables()) return absl::OkStatus();
  return Zero(
      device_, gradients(0),
      device_.shares_host_memory() ? offsets_.back() : on_device_.size());
}

float* RowGradientMemory::gradients(size_t table) {
  const Array<float>& all =
      device_.shares_host_memory() ? sides_[side_].host : on_device_;
  return all.data() + offsets_[table];
}

absl::Status RowGradientMemory::Fetch() {
  if (!has_tables() || device_.shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCopyOut,
                   absl::MakeConstSpan(on_device_.data(), offsets_.back()),
                   sides_[side_].host.data()));
  return device_.Record(Device::Stream::kCopyOut, *fetched_);
}

absl::Status RowGradientMemory::Await() {
  if (!has_tables()) return absl::OkStatus();
  return device_.Wait(*fetched_);
}

RowGradientMemory::Fetched RowGradientMemory::OnHost(size_t table) const {
  const Side& now = sides_[side_];
  return {.ids = now.ids[table],
          .gradients = absl::MakeConstSpan(now.host.data() + offsets_[table],
                                           sizes_[table])};
}

}  // namespace parasol
