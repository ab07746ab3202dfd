#ifndef PARASOL_ML_DEVICE_CUDA_NCCL_H_
#define PARASOL_ML_DEVICE_CUDA_NCCL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/cuda_device.h"

namespace parasol {

// NCCL 2, opened when it is first needed: neither a build nor a machine needs
// it. Has a rank on each of its devices, all of them in this process. Not
// thread-safe, as DeviceGroup.
class CudaNccl {
 public:
  // Returns OK if the library can be opened.
  //   FailedPrecondition  it is not on this machine, or lacks a function: says
  //                       which.
  static absl::Status Check();
  // Opens NCCL for `devices`, which must outlive the result. Errors as for
  // Check(), and
  //   Unavailable  NCCL does not start: the message has its reason.
  static absl::StatusOr<std::unique_ptr<CudaNccl>> Open(
      std::vector<CudaDevice*> devices);
  virtual ~CudaNccl() = default;

  // Enqueues, on the compute stream of each device, the replacement of all
  // arrays, one for each device, by their sum: the same bits everywhere, in an
  // order that is NCCL's own.
  //   Unavailable  NCCL or a device fails.
  virtual absl::Status AllReduce(absl::Span<float* const> arrays,
                                 int64_t elements) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_NCCL_H_
