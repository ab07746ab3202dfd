#ifndef PARASOL_ML_OPTIMIZER_DEVICE_REPLICA_MEAN_H_
#define PARASOL_ML_OPTIMIZER_DEVICE_REPLICA_MEAN_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// One replica's gradients, in the memory of the device that adds them.
struct ReplicaGradients {
  const float* data = nullptr;  // null: zeros
  float weight = 1;             // factor of each
};

inline constexpr size_t kMaxReplicasOfAMean = 16;

// Computes mean[i] = (weight_0 · g_0[i] + weight_1 · g_1[i] + …) / divisor for
// `size` elements, in this order, and rounds each operation: the bits of the
// same steps on the host, on every device. `mean` may be one of the replicas'
// arrays, but may not overlap one otherwise. At least one replica and at most
// kMaxReplicasOfAMean. Enqueues on `stream` and returns.
//   Unavailable  the device was lost.
absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream = Device::Stream::kCompute);

// The implementations for CPU and CUDA devices. The function above calls the
// one for `device`.
namespace cpu {
absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream);
}  // namespace cpu

namespace cuda {
absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream);
}  // namespace cuda

}  // namespace parasol

#endif  // PARASOL_ML_OPTIMIZER_DEVICE_REPLICA_MEAN_H_
