#include <algorithm>
#include <cstdint>

#include "ml/device/cuda_launch.h"
#include "ml/optimizer/device/replica_mean.h"

namespace parasol::cuda {
namespace {

struct MeanOfReplicas {
  ReplicaGradients replicas[kMaxReplicasOfAMean];
  int count;
  float divisor;
  float* mean;

  __device__ float Term(int replica, int64_t i) const {
    const float* const data = replicas[replica].data;
    return data == nullptr ? 0 : data[i] * replicas[replica].weight;
  }
  __device__ void operator()(int64_t i) const {
    float sum = Term(0, i);
    for (int replica = 1; replica < count; ++replica) sum += Term(replica, i);
    mean[i] = sum / divisor;
  }
};

}  // namespace

absl::Status ReplicaMean(Device& device,
                         absl::Span<const ReplicaGradients> replicas,
                         float divisor, int64_t size, float* mean,
                         Device::Stream stream) {
  MeanOfReplicas kernel = {.replicas = {},
                           .count = static_cast<int>(replicas.size()),
                           .divisor = divisor,
                           .mean = mean};
  std::copy(replicas.begin(), replicas.end(), kernel.replicas);
  ASSIGN_OR_RETURN(CUstream_st* const on,
                   static_cast<CudaDevice&>(device).StreamOf(stream));
  return ForEach(on, "mean of replicas", size, kernel);
}

}  // namespace parasol::cuda
