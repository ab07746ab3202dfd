#include <algorithm>
#include <cstdint>

#include "ml/kernel/copy_columns.h"

namespace parasol::cpu {

absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * from_stride, columns, to + row * to_stride);
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
