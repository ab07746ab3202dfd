#include <cuda_runtime.h>

#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_status.h"
#include "ml/kernel/zero.h"

namespace parasol::cuda {

absl::Status Zero(Device& device, float* data, int64_t size) {
  if (size == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return CudaStatus(cudaMemsetAsync(data, 0, size * sizeof(float), stream),
                    device.name());
}

}  // namespace parasol::cuda
