#ifndef PARASOL_WORKER_GROUP_SUM_ON_DEVICE_H_
#define PARASOL_WORKER_GROUP_SUM_ON_DEVICE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/optimizer/device/replica_mean.h"

namespace parasol {

// The sum of a step's gradients in the memory of a device, and its copy on the
// host. Whoever calls uses the device alone meanwhile. Functions return
//   ResourceExhausted  the host or the device is full.
//   Unavailable        the device was lost.
class SumOnDevice {
 public:
  // Makes room for the sum, on the host as well if every sum is fetched.
  // Borrows `device`.
  static absl::StatusOr<std::unique_ptr<SumOnDevice>> Create(Device& device,
                                                             size_t elements,
                                                             bool is_fetched);

  // Arrays in the memory of the device and in the host's; the second one is
  // empty until a sum is fetched.
  absl::Span<float> values() { return values_.span(); }
  absl::Span<float> on_host() { return on_host_.span(); }
  // Marks where the device has read the sum last: the next one waits for it.
  Device::Event& read() { return *read_; }

  // Enqueues the sum of `terms`, in their order, and its copy to the host if
  // every sum is fetched; of no terms: zeros.
  absl::Status AddUp(std::vector<ReplicaGradients> terms);
  // Copies the sum to on_host(). Returns when it is there.
  absl::Status Fetch();
  // Returns true if an element is not finite.
  absl::StatusOr<bool> HasNonFinite();
  // Enqueues a mean, the sum divided by `replicas`, at `mean` on the device.
  absl::Status WriteMean(int replicas, float* mean);

 private:
  explicit SumOnDevice(Device& device) : device_(device) {}

  absl::Status CopyToHost();

  Device& device_;
  Array<float> values_;
  std::unique_ptr<Device::Event> read_;
  Array<float> on_host_;     // none: not fetched
  Array<float> non_finite_;  // the number of them in the sum
  Array<float> non_finite_on_host_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_SUM_ON_DEVICE_H_
