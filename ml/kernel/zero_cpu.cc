#include <algorithm>
#include <cstdint>

#include "ml/kernel/zero.h"

namespace parasol::cpu {

absl::Status Zero(Device& device, float* data, int64_t size) {
  std::fill_n(data, size, 0.0f);
  return absl::OkStatus();
}

}  // namespace parasol::cpu
