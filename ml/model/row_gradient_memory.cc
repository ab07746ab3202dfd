#include "ml/model/row_gradient_memory.h"

#include "base/status_macros.h"
#include "ml/kernel/zero.h"
#include "ml/model/input_array.h"

namespace parasol {

absl::Status RowGradientMemory::Next(absl::Span<const StagedBatch::Rows> rows) {
  side_ = 1 - side_;
  for (size_t i = 0; i < tables_.size(); ++i) {
    Table& table = tables_[i];
    Side& now = Now(i);
    // assign() would grow by as little as it can.
    now.ids.clear();
    now.ids.insert(now.ids.end(), rows[i].ids.begin(), rows[i].ids.end());
    now.elements = rows[i].values.size();
    RETURN_IF_ERROR(GrowOnHost(device_, now.elements, now.host));
    if (!device_.shares_host_memory()) {
      RETURN_IF_ERROR(Grow(device_, now.elements, table.on_device));
    }
    if (table.fetched == nullptr) {
      ASSIGN_OR_RETURN(table.fetched, device_.NewEvent());
    }
    RETURN_IF_ERROR(Zero(device_, gradients(i), now.elements));
  }
  return absl::OkStatus();
}

float* RowGradientMemory::gradients(size_t table) {
  return device_.shares_host_memory() ? Now(table).host.data()
                                      : tables_[table].on_device.data();
}

absl::Status RowGradientMemory::Fetch(size_t table) {
  if (device_.shares_host_memory()) return absl::OkStatus();
  RETURN_IF_ERROR(
      device_.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCopyOut,
                   absl::MakeConstSpan(gradients(table), Now(table).elements),
                   Now(table).host.data()));
  return device_.Record(Device::Stream::kCopyOut, *tables_[table].fetched);
}

absl::StatusOr<RowGradientMemory::Fetched> RowGradientMemory::Await(
    size_t table) {
  RETURN_IF_ERROR(device_.Wait(*tables_[table].fetched));
  const Side& now = Now(table);
  return Fetched{.ids = now.ids,
                 .gradients = now.host.span().first(now.elements)};
}

}  // namespace parasol
