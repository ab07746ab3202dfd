#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/exchange_rows.h"

namespace parasol::cuda {
namespace {

// The lanes of a warp take neighbouring elements of one row.
struct ExchangedRows {
  const ExchangedRow* rows;
  float* buffer;

  __device__ void operator()(int64_t index, int lane) const {
    const ExchangedRow exchanged = rows[index];
    float* const other = buffer + exchanged.begin;
    for (uint32_t i = lane; i < exchanged.floats; i += kWarpSize) {
      const float element = other[i];
      other[i] = exchanged.row[i];
      exchanged.row[i] = element;
    }
  }
};

}  // namespace

absl::Status ExchangeRows(Device& device, const ExchangedRow* rows,
                          int64_t count, float* buffer) {
  return ForEachRow(device, "exchange of rows", count,
                    ExchangedRows{.rows = rows, .buffer = buffer});
}

}  // namespace parasol::cuda
