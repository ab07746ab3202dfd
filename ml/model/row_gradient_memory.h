#ifndef PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_
#define PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/model.h"

namespace parasol {

// Memory for the gradients of a pass's rows, and their way to the host. Each
// table has two arrays on the host, so that the last pass's gradients can be
// sent while the present ones are written. Not thread-safe.
class RowGradientMemory {
 public:
  // Borrows `device`.
  RowGradientMemory(Device& device, size_t tables)
      : device_(device), tables_(tables) {}

  // Prepares a backward pass over `rows`: sets their gradients to zero, in the
  // order of the compute stream, and leaves those of the last pass in place.
  //   ResourceExhausted  the device is full.
  absl::Status Next(absl::Span<const StagedBatch::Rows> rows);

  // Gradients [ids, width] of a table, in the device's memory.
  float* gradients(size_t table);

  // Fetch() enqueues the copy of a table's gradients to the host behind the
  // work that is on the compute stream now; Await() blocks until they are
  // there.
  absl::Status Fetch(size_t table);
  struct Fetched {
    absl::Span<const uint64_t> ids;
    absl::Span<const float> gradients;
  };
  absl::StatusOr<Fetched> Await(size_t table);

 private:
  struct Side {
    std::vector<uint64_t> ids;
    Array<float> host;
    size_t elements = 0;
  };
  struct Table {
    std::array<Side, 2> sides;
    Array<float> on_device;  // empty on the CPU
    std::unique_ptr<Device::Event> fetched;
  };

  Side& Now(size_t table) { return tables_[table].sides[side_]; }

  Device& device_;
  std::vector<Table> tables_;
  int side_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_
