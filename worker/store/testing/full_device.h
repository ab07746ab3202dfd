#ifndef PARASOL_WORKER_STORE_TESTING_FULL_DEVICE_H_
#define PARASOL_WORKER_STORE_TESTING_FULL_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ml/device/testing/lazy_copy_device.h"

namespace parasol {

// A device with a limit on its own memory.
class FullDevice : public LazyCopyDevice {
 public:
  // Refuses allocations that come to more than `bytes` beside what is allocated
  // now.
  void LeaveFree(size_t bytes) { free_ = bytes; }
  // Refuses all allocations, whatever is given back.
  void RefuseAll() { refuses_all_ = true; }
  // Number of times that memory was given back while copies to or from it were
  // enqueued.
  int freed_in_use() const { return freed_in_use_; }

 private:
  absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) override {
    if (!on_host && (refuses_all_ || bytes > free_)) {
      return absl::ResourceExhaustedError(
          absl::StrCat(bytes, " bytes: out of memory"));
    }
    const absl::StatusOr<void*> data = LazyCopyDevice::Allocate(bytes, on_host);
    if (!data.ok()) return data;
    sizes_[*data] = bytes;
    if (!on_host && free_ != SIZE_MAX) free_ -= bytes;
    return data;
  }
  void Free(void* data, bool on_host) override {
    if (IsInUse(data, sizes_[data])) ++freed_in_use_;
    if (!on_host && free_ != SIZE_MAX) free_ += sizes_[data];
    LazyCopyDevice::Free(data, on_host);
  }

  size_t free_ = SIZE_MAX;
  bool refuses_all_ = false;
  int freed_in_use_ = 0;
  std::map<void*, size_t> sizes_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_TESTING_FULL_DEVICE_H_
