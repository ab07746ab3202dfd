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
#include "ml/model/staged_inputs.h"

namespace parasol {

// Memory for the gradients of a pass's rows, and their way to the host, unless
// the rows are on the device. The gradients of all tables lie in one array,
// those that go to the host first, so that one copy takes them. On the host
// there are two, so that the last pass's gradients can be sent while the
// present ones are written. Not thread-safe.
class RowGradientMemory {
 public:
  // Borrows `device`.
  RowGradientMemory(Device& device, size_t tables)
      : device_(device), parts_(tables) {
    for (Side& side : sides_) side.ids.resize(tables);
  }

  // Makes room for a backward pass over the rows of `batch`, and leaves the
  // gradients of the last pass in place.
  //   ResourceExhausted  the device is full.
  absl::Status Next(const StagedInputs& batch);

  // Sets the gradients to zero, in the order of the compute stream. On a CUDA
  // device all that there is room for, so that a recorded pass can do it
  // whatever the number of rows.
  absl::Status Clear();

  // Gradients [ids, width] of a table, in the device's memory.
  float* gradients(size_t table);
  // The largest number of elements that all of them may have before their
  // memory grows.
  int64_t capacity() const { return all().size(); }

  // Returns true if the table's gradients go to the host.
  bool goes_to_host(size_t table) const { return parts_[table].goes_to_host; }
  // Fetch() enqueues their copy behind the work that is on the compute stream
  // now; Await() blocks until OnHost() has them.
  absl::Status Fetch();
  absl::Status Await();
  // Returns true if Await() has waited for the pass, or there are no tables:
  // false if no table has rows in it that go to the host.
  bool awaits_pass() const {
    return !has_tables() || to_host_ > 0 || device_.shares_host_memory();
  }
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
  // The gradients of one table in the array of all.
  struct Part {
    bool goes_to_host = true;
    size_t offset = 0;
    size_t size = 0;
  };

  bool has_tables() const { return !parts_.empty(); }
  const Array<float>& all() const {
    return device_.shares_host_memory() ? sides_[side_].host : on_device_;
  }
  void Place(const StagedInputs& batch, bool on_device);

  Device& device_;
  std::vector<Part> parts_;  // one per table
  size_t size_ = 0;          // all elements
  size_t to_host_ = 0;       // number of them, the first ones, that go there
  std::array<Side, 2> sides_;
  int side_ = 0;
  Array<float> on_device_;  // empty on the CPU
  std::unique_ptr<Device::Event> fetched_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_ROW_GRADIENT_MEMORY_H_
