#ifndef PARASOL_WORKER_MIRRORED_DEVICE_GRADIENTS_H_
#define PARASOL_WORKER_MIRRORED_DEVICE_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "cluster/client/parameter_client.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/device_training.h"
#include "worker/mirrored/gradient_packs.h"

namespace parasol {

// The gradients of variables of one step that the replicas of this process have
// computed so far, in the memory of the device that computes, and their sum:
// the counterpart of StepGradients where NCCL adds those of other workers.
// Thread-safe.
class DeviceGradients {
 public:
  // Borrows `device` and `training`, whose variables `variables` describes.
  // `fetches_sum`: the sum is copied to the host (on_host()).
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DeviceGradients>> Create(
      Device& device, DeviceTraining& training,
      const std::vector<VariableSpec>& variables, bool fetches_sum = true);

  // The device, which takes the work of one thread at a time: whoever uses it
  // holds the mutex.
  Device& device() { return device_; }
  absl::Mutex& device_mutex() { return device_mu_; }

  // Notes which replicas are this process's, as StepGradients::SetShare() does.
  void SetShare(std::vector<int> replicas) ABSL_LOCKS_EXCLUDED(mu_);

  // Copies the gradients of the pass that was enqueued last, times their
  // weight; the first push of a step forgets those of the steps before. Ignores
  // a step that is over, and gradients that it has. Returns when the device is
  // done with the pass. Requires PushRequest::sync and on_device.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  absl::Status Add(const ParameterClient::PushRequest& push)
      ABSL_LOCKS_EXCLUDED(mu_, device_mu_);

  // Returns true if all of `replicas` have pushed `step`.
  bool Has(int64_t step, const std::vector<int>& replicas) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Makes sum() the sum of the gradients of `replicas`, ascending, which have
  // pushed the step; of none: zeros. Returns when it is there.
  //   Unavailable  the device was lost.
  absl::Status AddUp(const std::vector<int>& replicas)
      ABSL_LOCKS_EXCLUDED(mu_, device_mu_);
  // Copies sum() to on_host(), and returns when it is there.
  //   Unavailable  the device was lost.
  absl::Status FetchSum() ABSL_LOCKS_EXCLUDED(device_mu_);

  // Arrays in the memory of the device and in the host's; the caller may change
  // both between AddUp() and the next one.
  absl::Span<float> sum() { return sum_.span(); }
  absl::Span<float> on_host() { return on_host_.span(); }
  // Copies on_host() to the packs in which gradients travel otherwise.
  void CopyTo(const GradientPacks& packs,
              std::vector<std::vector<float>>& sums) const;

 private:
  // A variable's elements in the array of all gradients; none if it is frozen.
  struct Place {
    size_t first = 0;
    size_t elements = 0;
  };

  DeviceGradients(Device& device, absl::Span<float> gradients)
      : device_(device), gradients_(gradients) {}

  // Returns the memory for a replica's gradients; null if the step is over or
  // has them.
  absl::StatusOr<float*> PlaceOf(int64_t step, int replica)
      ABSL_LOCKS_EXCLUDED(mu_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);

  Device& device_;
  const absl::Span<float> gradients_;  // a pass writes them
  std::vector<Place> places_;          // index: variable
  Array<float> sum_;
  Array<float> on_host_;

  absl::Mutex device_mu_;  // taken before mu_

  mutable absl::Mutex mu_;
  std::vector<int> share_ ABSL_GUARDED_BY(mu_);
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  std::map<int, Array<float>> replicas_ ABSL_GUARDED_BY(mu_);
  std::map<int, bool> has_pushed_ ABSL_GUARDED_BY(mu_);  // the step, whole
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_DEVICE_GRADIENTS_H_
