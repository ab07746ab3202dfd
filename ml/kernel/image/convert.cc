#include "ml/kernel/image/convert.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to) {
  return PARASOL_DISPATCH(device, Convert(device, from, size, to));
}

}  // namespace parasol
