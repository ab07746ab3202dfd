#ifndef PARASOL_ML_MODEL_INPUT_PACK_H_
#define PARASOL_ML_MODEL_INPUT_PACK_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// Arrays of a batch at addresses where the device reads them: in place on a
// device that shares the host's memory, otherwise side by side in one copy.
// Arrays keep their addresses from batch to batch, but for those that need more
// room than ever before, and now and then for all. Not thread-safe.
class InputPack {
 public:
  // Borrows `device`.
  explicit InputPack(Device& device) : device_(device) {}

  // Adds an array, before the first batch, and returns its index.
  size_t Add();

  // Sets the values of an array of the next batch. The caller keeps them until
  // Send() returns; where the device shares the host's memory, as long as
  // data() is read.
  template <typename T>
  void Set(size_t array, absl::Span<const T> values) {
    SetBytes(array, values.data(), values.size() * sizeof(T));
  }

  // Enqueues the copy of all arrays on the copy-in stream. To be called only
  // when the copy of the last Send() is complete, and no work reads it.
  //   ResourceExhausted  out of memory.
  absl::Status Send();

  // Address of an array's values for the device. Null if it has none.
  template <typename T>
  const T* data(size_t array) const {
    return static_cast<const T*>(Address(array));
  }
  // Address of the array's room, never null where the device does not share the
  // host's memory.
  template <typename T>
  const T* room(size_t array) const {
    return reinterpret_cast<const T*>(on_device_.data() +
                                      arrays_[array].offset);
  }
  // Number of elements for which an array has room.
  template <typename T>
  size_t capacity(size_t array) const {
    return arrays_[array].capacity / sizeof(T);
  }

 private:
  struct Part {
    const void* from = nullptr;
    size_t bytes = 0;
    size_t capacity = 0;  // bytes
    size_t offset = 0;
  };

  void SetBytes(size_t array, const void* from, size_t bytes);
  const void* Address(size_t array) const;
  absl::Status Reserve();

  Device& device_;
  std::vector<Part> arrays_;
  size_t end_ = 0;  // end of the last array's room
  Array<std::byte> host_, on_device_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_INPUT_PACK_H_
