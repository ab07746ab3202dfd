#ifndef PARASOL_ML_OPTIMIZER_DEVICE_TABLE_KERNELS_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_TABLE_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/kernel/pass_argument.h"
#include "ml/optimizer/optimizer.h"
#include "ml/optimizer/rule/update_rule.h"

// The kernels of TableUpdate on a CUDA device. Each is launched once for all
// tables, up to kMaxUpdatedTables.
//
// All functions enqueue on the compute stream and return. Error Unavailable:
// the device was lost.
namespace parasol::cuda {

// A kernel's arguments are at most 4 KB.
constexpr size_t kMaxUpdatedTables = 100;

struct UpdatedTable {
  const TableRows* rows;
  int64_t elements;
  int64_t num_rows;
};

// The way in which gradients are clipped when they are read. Sums have one
// element for each table of a call; null: no such limit.
struct TableClip {
  float value_limit = std::numeric_limits<float>::infinity();
  double norm_limit = 0;
  const double* sums = nullptr;
  double global_limit = 0;
  const double* clipped_sums = nullptr;
};

// Applies `rule` to the rows of each table, and marks them with `mark` unless
// it is 0.
absl::Status LaunchRowUpdate(Device& device, const UpdateRule& rule,
                             absl::Span<const UpdatedTable> tables,
                             const TableClip& clip, int32_t mark);

// Applies `rule` to all rows that are not marked with `mark`, with gradients of
// 0; to their slots alone, or to all of them.
absl::Status LaunchOtherRowUpdate(Device& device, const UpdateRule& rule,
                                  absl::Span<const UpdatedTable> tables,
                                  Optimizer::OtherRows what, int32_t mark);

// Returns the number of chunks of the largest gradient.
int64_t MostChunks(absl::Span<const UpdatedTable> tables);

// Writes the sum of squares of each table's gradient, clipped by `clip`, to
// `sums`. `chunk_sums`: memory for MostChunks() numbers per table.
absl::Status LaunchTableSums(Device& device,
                             absl::Span<const UpdatedTable> tables,
                             const TableClip& clip, double* chunk_sums,
                             double* sums);

}  // namespace parasol::cuda

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_TABLE_KERNELS_H_
