#ifndef PARASOL_ML_MODEL_INPUT_ARRAY_H_
#define PARASOL_ML_MODEL_INPUT_ARRAY_H_

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ml/device/device.h"

namespace parasol {

// Makes `array` at least `size` elements long, in the device's memory. It grows
// by at least half, so that varying sizes soon need no allocation. An array
// that grows loses its contents.
//   ResourceExhausted  there is not enough memory.
template <typename T>
absl::Status Grow(Device& device, size_t size, Array<T>& array) {
  if (size <= array.size() && array.size() > 0) return absl::OkStatus();
  const size_t larger = std::max({size, array.size() * 3 / 2, size_t{1}});
  ASSIGN_OR_RETURN(array, device.NewArray<T>(larger));
  return absl::OkStatus();
}
// Does the same as Grow() for an array in host memory.
template <typename T>
absl::Status GrowOnHost(Device& device, size_t size, Array<T>& array) {
  if (size <= array.size() && array.size() > 0) return absl::OkStatus();
  const size_t larger = std::max({size, array.size() * 3 / 2, size_t{1}});
  ASSIGN_OR_RETURN(array, device.NewHostArray<T>(larger));
  return absl::OkStatus();
}

// Values of a batch at an address where the device reads them: in place on a
// device that shares the host's memory, otherwise a copy.
template <typename T>
class InputArray {
 public:
  // Enqueues the copy of `values` on the copy-in stream. The caller keeps
  // `values` as long as data() is read, and calls Load() only after the copy of
  // the last Load() is complete.
  absl::Status Load(Device& device, absl::Span<const T> values) {
    data_ = values.empty() ? nullptr : values.data();
    if (device.shares_host_memory() || values.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(GrowOnHost(device, values.size(), host_));
    RETURN_IF_ERROR(Grow(device, values.size(), on_device_));
    data_ = on_device_.data();
    // Pinned memory, because from pageable memory the driver would copy the
    // same bytes the same way, but keep this thread waiting.
    std::copy(values.begin(), values.end(), host_.data());
    return device.Copy(Device::Stream::kCopyIn,
                       absl::MakeConstSpan(host_.data(), values.size()),
                       on_device_.data());
  }

  // Address of the values for the device. Null after an empty Load().
  const T* data() const { return data_; }

 private:
  const T* data_ = nullptr;
  Array<T> host_, on_device_;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_INPUT_ARRAY_H_
