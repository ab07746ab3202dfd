#ifndef PARASOL_WORKER_STORE_GRADIENT_MEANS_H_
#define PARASOL_WORKER_STORE_GRADIENT_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device_group.h"
#include "ml/optimizer/device/replica_mean.h"
#include "parameters/device_parts.h"

namespace parasol {

// The means of the gradients of replicas, each of which has its gradients in
// the memory of its own device, where the mean takes their place. No gradient
// goes through the host, and the host waits for none. Not thread-safe.
class GradientMeans {
 public:
  // Devices that add. The first two ways add in ascending order of the
  // replicas: the bits of ReplicaParameters.
  enum class Way {
    kAllDevices,   // each device a slice of the array
    kFirstDevice,  // device 0 all of it
    kNccl,         // NCCL, in an order of its own
  };

  // Borrows `group`, made with NCCL if that adds. gradients[i] is the array of
  // all gradients on its device i; all arrays have the same size. At most
  // kMaxReplicasOfAMean replicas.
  //   ResourceExhausted  a device is full.
  static absl::StatusOr<std::unique_ptr<GradientMeans>> Create(
      DeviceGroup& group, std::vector<absl::Span<float>> gradients, Way way);

  // Makes the mean each device's gradients, behind the work that the devices
  // have. parts[i] says what replica i has added to the step.
  //   Unavailable  a device was lost, or NCCL failed.
  absl::Status Enqueue(absl::Span<const DevicePart> parts);

 private:
  // A range of the arrays that one device adds, and memory there for the ranges
  // of all other devices.
  struct Slice {
    int64_t first = 0;
    int64_t size = 0;
    Array<float> of_others = {};
  };

  GradientMeans(DeviceGroup& group, std::vector<absl::Span<float>> gradients,
                Way way)
      : group_(group), gradients_(std::move(gradients)), way_(way) {}

  absl::Status DivideWork();
  int64_t size() const {
    return static_cast<int64_t>(gradients_.front().size());
  }
  float divisor() const { return static_cast<float>(gradients_.size()); }
  // Adds the slice of a device on it, and copies the mean to all others.
  absl::Status AddSlice(size_t device, absl::Span<const DevicePart> parts);
  absl::Status AddByNccl(absl::Span<const DevicePart> parts);

  DeviceGroup& group_;
  const std::vector<absl::Span<float>> gradients_;
  const Way way_;
  std::vector<Slice> slices_;  // one for each device; empty with NCCL
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_GRADIENT_MEANS_H_
