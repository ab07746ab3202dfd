#include "ml/optimizer/device/replica_mean.h"

#include "base/log.h"
#include "ml/device/dispatch.h"

namespace parasol {

absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream) {
  CHECK(!replicas.empty());
  CHECK_LE(replicas.size(), kMaxReplicasOfAMean);
  return PARASOL_DISPATCH(
      device, ReplicaMean(device, replicas, divisor, size, mean, stream));
}

}  // namespace parasol
