#ifndef PARASOL_ML_OPTIMIZER_DEVICE_TABLE_UPDATE_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_TABLE_UPDATE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"
#include "ml/optimizer/optimizer.h"
#include "proto/job.pb.h"

namespace parasol {

// The updates of sparse tables by one optimizer, in the memory of a device. A
// few launches clip and update all tables, and nothing is copied to the host.
//
// Rows have the bits that ml/optimizer/clip.h, Optimizer::ApplyRows() and
// ApplyOtherRows() give, on every device, as far as rule/rule.h says. Not
// thread-safe.
class TableUpdate {
 public:
  struct Table {
    // The rows that the gradient has, with the gradient, in blocks, in the
    // device's memory. Each row is there once.
    const TableRows* rows = nullptr;
    int64_t elements = 0;  // the same as rows->elements
    // Number of all rows, those that have no gradient included.
    int64_t num_rows = 0;
  };

  // Each table's gradient is clipped as `limits` says: by value, by its norm,
  // then by what it is for the common norm, in which no other one takes part.
  // If other_rows() of the optimizer are touched, the blocks need marks.
  // Borrows device and optimizer.
  static absl::StatusOr<std::unique_ptr<TableUpdate>> Create(
      Device& device, const Optimizer& optimizer, const job::Optimizer& limits);
  virtual ~TableUpdate() = default;

  // Enqueues one update of each table on the compute stream; they have had
  // `iterations` updates. The gradients are unspecified afterwards.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  virtual absl::Status Apply(int64_t iterations,
                             absl::Span<const Table> tables) = 0;
};

// Returns the mark of the rows that the update behind `iterations` others has
// touched: never 0, the mark of new rows.
inline int32_t MarkOfUpdate(int64_t iterations) {
  return static_cast<int32_t>(1 + iterations % INT32_MAX);
}

// The implementations for CPU and CUDA devices. TableUpdate::Create() calls the
// one for `device`.
namespace cpu {
absl::StatusOr<std::unique_ptr<TableUpdate>> NewTableUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits);
}  // namespace cpu

namespace cuda {
absl::StatusOr<std::unique_ptr<TableUpdate>> NewTableUpdate(
    Device& device, const Optimizer& optimizer, const job::Optimizer& limits);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_TABLE_UPDATE_H_
