#include "ml/model/row_gradient_memory.h"

#include "base/status_macros.h"
#include "ml/kernel/zero.h"
#include "ml/model/memory/arena.h"
#include "ml/model/memory/grow.h"

namespace parasol {

absl::Status RowGradientMemory::Next(const StagedInputs& batch) {
  if (!has_tables()) return absl::OkStatus();
  side_ = 1 - side_;
  size_ = 0;
  Place(batch, /*on_device=*/false);
  to_host_ = size_;
  Place(batch, /*on_device=*/true);
  if (to_host_ > 0 || device_.shares_host_memory()) {
    RETURN_IF_ERROR(GrowOnHost(device_, to_host_, sides_[side_].host));
  }
  if (!device_.shares_host_memory()) {
    RETURN_IF_ERROR(Grow(device_, size_, on_device_));
  }
  if (fetched_ == nullptr) {
    ASSIGN_OR_RETURN(fetched_, device_.NewEvent());
  }
  return absl::OkStatus();
}

// Gives a part to each table that is, or is not, on the device.
void RowGradientMemory::Place(const StagedInputs& batch, bool on_device) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (batch.is_on_device(i) != on_device) continue;
    parts_[i] = {.goes_to_host = !on_device,
                 .offset = size_,
                 .size = static_cast<size_t>(batch.RowsOf(i).elements)};
    size_ += AlignedElements(parts_[i].size);
    std::vector<uint64_t>& ids = sides_[side_].ids[i];
    // assign() would grow by as little as it can.
    ids.clear();
    if (on_device) continue;
    ids.insert(ids.end(), batch.ids(i).begin(), batch.ids(i).end());
  }
}

absl::Status RowGradientMemory::Clear() {
  if (!has_tables()) return absl::OkStatus();
  return Zero(device_, all().data(),
              device_.shares_host_memory() ? size_ : on_device_.size());
}

float* RowGradientMemory::gradients(size_t table) {
  return all().data() + parts_[table].offset;
}

absl::Status RowGradientMemory::Fetch() {
  if (to_host_ == 0 || device_.shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(device_.Copy(Device::Stream::kCopyOut,
                               absl::MakeConstSpan(on_device_.data(), to_host_),
                               sides_[side_].host.data()));
  return device_.Record(Device::Stream::kCopyOut, *fetched_);
}

absl::Status RowGradientMemory::Await() {
  if (to_host_ == 0) return absl::OkStatus();
  return device_.Wait(*fetched_);
}

RowGradientMemory::Fetched RowGradientMemory::OnHost(size_t table) const {
  const Side& now = sides_[side_];
  const Part& part = parts_[table];
  return {.ids = now.ids[table],
          .gradients =
              absl::MakeConstSpan(now.host.data() + part.offset, part.size)};
}

}  // namespace parasol
