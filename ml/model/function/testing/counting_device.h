#ifndef PARASOL_ML_MODEL_FUNCTION_TESTING_COUNTING_DEVICE_H_
#define PARASOL_ML_MODEL_FUNCTION_TESTING_COUNTING_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ml/device/testing/lazy_copy_device.h"

namespace parasol {

// A device with memory of its own that counts what it does, and fails when it
// is told to.
class CountingDevice final : public LazyCopyDevice {
 public:
  struct Counts {
    int allocations = 0;
    int64_t bytes_in = 0;   // copied from the host to the device
    int64_t bytes_out = 0;  // copied from the device to the host
  };

  // Returns the counts since the last call.
  Counts Take() { return std::exchange(counts_, Counts()); }
  // Refuses all allocations on the device, or none.
  void Refuse(bool refuses) { refuses_ = refuses; }
  // Has all copies fail, or none.
  void Lose(bool is_lost) { is_lost_ = is_lost; }

 private:
  absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) override {
    if (refuses_ && !on_host) {
      return absl::ResourceExhaustedError(
          absl::StrCat("counting:0, device memory: ", bytes, " bytes"));
    }
    ++counts_.allocations;
    return LazyCopyDevice::Allocate(bytes, on_host);
  }
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    if (is_lost_) return absl::UnavailableError("counting:0: it is lost");
    (stream == Stream::kCopyOut ? counts_.bytes_out : counts_.bytes_in) +=
        static_cast<int64_t>(bytes);
    return LazyCopyDevice::CopyBytes(stream, from, to, bytes);
  }

  Counts counts_;
  bool refuses_ = false;
  bool is_lost_ = false;
};

}  // namespace parasol

#endif  // PARASOL_ML_MODEL_FUNCTION_TESTING_COUNTING_DEVICE_H_
