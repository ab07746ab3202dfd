#ifndef PARASOL_ML_DEVICE_CPU_DEVICE_H_
#define PARASOL_ML_DEVICE_CPU_DEVICE_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/cpu_blas.h"
#include "ml/device/device.h"

namespace parasol {

// A device that computes on the calling thread and `threads - 1` of OpenMP's.
// Every operation is finished when its call returns, so streams and events do
// nothing.
class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads);

  int threads() const { return threads_; }
  CpuBlas& blas() { return blas_; }

  // Returns at least `floats` elements of scratch memory, at a multiple of 64
  // bytes: one array for all kernels that need some, as one runs at a time. It
  // stays valid until the next call, and holds anything.
  //   ResourceExhausted  no memory.
  absl::StatusOr<float*> Scratch(size_t floats);

  absl::Status Order(Stream earlier, Stream later) override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::Status Record(Stream stream, Event& event) override;
  absl::Status Follow(Event& event, Stream later) override;
  absl::Status Wait(Event& event) override;
  absl::Status Synchronize() override;

 protected:
  absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) override;
  void Free(void* data, bool on_host) override;

 private:
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override;

  const int threads_;
  CpuBlas blas_;
  Array<float> scratch_;  // ends before the device does
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CPU_DEVICE_H_
