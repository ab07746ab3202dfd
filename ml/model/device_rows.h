#ifndef PARASOL_ML_MODEL_DEVICE_ROWS_H_
#define PARASOL_ML_MODEL_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// The rows of one table that a batch reads.
struct RowLookup {
  size_t table = 0;
  absl::Span<const uint64_t> ids = {};  // distinct
  // Number of each row in `blocks`, written if the rows are on the device. As
  // long as `ids`. Rows are there until the next call of Find().
  absl::Span<int32_t> numbers = {};
  RowBlocks blocks = {};
  bool is_on_device = false;
};

// Tables whose rows are in the memory of a model's device. Tables are numbered
// as in the model. Not thread-safe.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;

  // Finds the rows of a batch, with one entry for each table, and makes those
  // that are missing: what brings rows to their places is on the copy-in stream
  // or the compute stream afterwards. Tables whose rows are in host memory,
  // from now on, are not on the device.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  virtual absl::Status Find(absl::Span<RowLookup> lookups) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DEVICE_ROWS_H_
