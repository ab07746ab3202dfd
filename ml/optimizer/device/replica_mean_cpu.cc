#include "ml/optimizer/device/replica_mean.h"

namespace parasol::cpu {

absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream) {
  const auto term = [](const ReplicaGradients& replica, int64_t i) {
    return replica.data == nullptr ? 0 : replica.data[i] * replica.weight;
  };
  for (int64_t i = 0; i < size; ++i) {
    float sum = term(replicas.front(), i);
    for (const ReplicaGradients& replica : replicas.subspan(1)) {
      sum += term(replica, i);
    }
    mean[i] = sum / divisor;
  }
  return absl::OkStatus();
}

}  // namespace parasol::cpu
