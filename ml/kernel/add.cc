#include "ml/kernel/add.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Add(Device& device, ConstElements a, ConstElements b, int64_t size,
                 AddEpilogue epilogue, Elements y) {
  return PARASOL_DISPATCH(device, Add(device, a, b, size, epilogue, y));
}

}  // namespace parasol
