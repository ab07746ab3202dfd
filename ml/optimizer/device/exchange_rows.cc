#include "ml/optimizer/device/exchange_rows.h"

#include "ml/device/dispatch.h"

namespace parasol {

absl::Status ExchangeRows(Device& device, const ExchangedRow* rows,
                          int64_t count, float* buffer) {
  return PARASOL_DISPATCH(device, ExchangeRows(device, rows, count, buffer));
}

}  // namespace parasol
