#include "ml/optimizer/device/dense_update.h"

#include <utility>

#include "ml/device/dispatch.h"

namespace parasol {

absl::StatusOr<std::unique_ptr<DenseUpdate>> DenseUpdate::Create(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits,
    std::vector<Variable> variables) {
  return PARASOL_DISPATCH(
      device, NewDenseUpdate(device, optimizer, limits, std::move(variables)));
}

}  // namespace parasol
