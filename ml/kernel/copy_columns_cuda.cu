#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/kernel/copy_columns.h"

namespace parasol::cuda {
namespace {

struct CopyColumn {
  int64_t columns;
  const float* from;
  int64_t from_stride;
  float* to;
  int64_t to_stride;
  __device__ void operator()(int64_t i) const {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    to[row * to_stride + column] = from[row * from_stride + column];
  }
};

}  // namespace

absl::Status CopyColumns(Device& device, int64_t rows, int64_t columns,
                         const float* from, int64_t from_stride, float* to,
                         int64_t to_stride) {
  return ForEach(device, "copy of columns", rows * columns,
                 CopyColumn{columns, from, from_stride, to, to_stride});
}

}  // namespace parasol::cuda
