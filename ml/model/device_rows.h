#ifndef PARASOL_ML_MODEL_DEVICE_ROWS_H_
#define PARASOL_ML_MODEL_DEVICE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/kernel/pass_argument.h"

namespace parasol {

// Tables whose rows are in the memory of a model's device. Tables are numbered
// as in the model. Not thread-safe.
class DeviceRows {
 public:
  virtual ~DeviceRows() = default;

  // Writes the numbers of the rows of `ids`, which are distinct, to `numbers`,
  // as long as `ids`, and makes the rows that are missing: what brings their
  // initial values is on the copy-in stream afterwards. Returns false if the
  // table's rows are in host memory, from now on.
  //   Unavailable  the device was lost.
  virtual absl::StatusOr<bool> Find(size_t table,
                                    absl::Span<const uint64_t> ids,
                                    absl::Span<int32_t> numbers) = 0;

  // Returns where the rows of a table are, for which Find() has returned true.
  // Valid until the next call of Find().
  virtual RowBlocks blocks(size_t table) const = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_DEVICE_ROWS_H_
