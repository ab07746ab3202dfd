#ifndef PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_
#define PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/model/model.h"

namespace parasol {

// Memory for the gradients of a pass's rows, and their way to the host. Those
// of all tables lie in one array, so that one copy takes all. On the host there
// are two, so that the last pass's gradients can be sent while the present ones
// are written. Not thread-safe.
class RowGradientMemory {
 public:
  // Borrows `device`.
  RowGradientMemory(Device& device, size_t tables)
      : device_(device), sizes_(tables), offsets_(tables + 1) {
    for (Side& side : sides_) side.ids.resize(tables);
  }

  // Makes room for a backward pass over `rows`, one for each table, and leaves
  // the gradients of the last pass in place.
  //   ResourceExhausted  the device is full.
  absl::Status Next(absl::Span<const StagedBatch::Rows> rows);

  // Sets the gradients to zero, in the order of the compute stream. On a CUDA
  // device all that there is room for, so that a recorded pass can do it
  // whatever the number of rows.
  absl::Status Clear();

  // Gradients [ids, width] of a table, in the device's memory.
  float* gradients(size_t table);

  // Fetch() enqueues the copy of all gradients to the host behind the work that
  // is on the compute stream now; Await() blocks until they are there, as
  // those of OnHost().
  absl::Status Fetch();
  absl::Status Await();
  struct Fetched {
    absl::Span<const uint64_t> ids;
    absl::Span<const float> gradients;
  };
  Fetched OnHost(size_t table) const;

 private:
  struct Side {
    std::vector<std::vector<uint64_t>> ids;  // one list per table
    Array<float> host;
  };

  bool has_tables() const { return !sizes_.empty(); }

  Device& device_;
  std::vector<size_t> sizes_;    // one per table
  std::vector<size_t> offsets_;  // one per table, then the array's size
  std::array<Side, 2> sides_;
  int side_ = 0;
  Array<float> on_device_;  // empty on the CPU
  std::unique_ptr<Device::Event> fetched_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_
