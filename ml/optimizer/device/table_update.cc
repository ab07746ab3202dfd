#include "ml/optimizer/device/table_update.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<TableUpdate>> TableUpdate::Create(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits) {
  return PARASOL_DISPATCH(device, NewTableUpdate(device, optimizer, limits));
}

}  // namespace parasol
