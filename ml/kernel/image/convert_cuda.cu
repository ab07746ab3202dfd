#include <cstdint>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_pack.h"
#include "ml/kernel/image/convert.h"

namespace parasol::cuda {

absl::Status Convert(Device& device, ConstElements from, int64_t size,
                     Elements to) {
  ASSIGN_OR_RETURN(CUstream_st * stream,
                   static_cast<CudaDevice&>(device).ComputeStream());
  return WithEdgeType(from.type(), [&]<typename From>() {
    return WithEdgeType(to.type(), [&]<typename To>() {
      return Convert(stream, from.As<From>(), size, to.As<To>());
    });
  });
}

}  // namespace parasol::cuda
