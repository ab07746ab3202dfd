#ifndef PARASOL_WORKER_GROUP_DEVICE_GRADIENTS_H_
#define PARASOL_WORKER_GROUP_DEVICE_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ml/device/device.h"
#include "ml/device/device_peer.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/device_training.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "worker/group/gradient_packs.h"
#include "worker/group/sum_on_device.h"

namespace parasol {

// The gradients of variables of one step that the replicas of this process have
// computed so far, in the memory of the device that computes, and their sum:
// the counterpart of StepGradients where NCCL adds the other workers'
// gradients.
//
// A pass's gradients are copied pack by pack, beside the pass, while it
// computes the gradients of earlier layers: each pack when the pass has written
// it. They are kept until the next step, as a step may be made again.
// Thread-safe.
class DeviceGradients {
 public:
  struct Options {
    int64_t bytes_per_pack = 0;  // the same as GroupParameters's
    // True if every sum is copied to the host.
    bool fetches_sum = true;
  };

  // Borrows `device` and `training`, whose variables `variables` describes.
  //   ResourceExhausted  the device is full.
  static absl::StatusOr<std::unique_ptr<DeviceGradients>> Create(
      Device& device, DeviceTraining& training,
      const std::vector<VariableSpec>& variables, const Options& options);

  // The device, which takes the work of one thread at a time: whoever uses it
  // holds the mutex.
  Device& device() { return device_; }
  absl::Mutex& device_mutex() ABSL_LOCK_RETURNED(device_mu_) {
    return device_mu_;
  }

  // Number of packs, which are GradientPacks' and in its order.
  size_t num_packs() const { return packs_.size(); }

  // Notes which replicas are this process's, as StepGradients::SetShare() does.
  void SetShare(std::vector<int> replicas) ABSL_LOCKS_EXCLUDED(mu_);
  // Has `on_taken` called, from the thread of the pass, after IsTaken() has
  // become true of a replica; null: nothing, when passes have ended.
  void SetOnTaken(std::function<void()> on_taken) ABSL_LOCKS_EXCLUDED(mu_);

  // Says whose gradients the next pass computes, and makes room for them. The
  // first one of a step forgets the gradients of earlier steps. Ignores a step
  // that is over, and gradients that it has.
  //   ResourceExhausted  the device is full.
  //   Unavailable        the device was lost.
  absl::Status Expect(const TrainingParameters::SyncStep& step,
                      const DevicePart& part)
      ABSL_LOCKS_EXCLUDED(mu_, device_mu_);
  // Orders a pass that is about to be enqueued behind the copies of the one
  // before.
  //   Unavailable  the device was lost.
  absl::Status BeginPass() ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);
  // Enqueues the copies, times their weight, of the gradients of the pass that
  // was expected and has been enqueued. Does nothing if none was expected. Does
  // not block.
  //   Unavailable  the device was lost.
  absl::Status Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes note of the push of a replica: its gradients count from now on. Takes
  // the expected ones if that was not done, as no pass was begun. Ignores a
  // replica whose gradients are not on this device.
  //   Unavailable  the device was lost.
  absl::Status Push(const TrainingParameters::SyncStep& step)
      ABSL_LOCKS_EXCLUDED(mu_, device_mu_);

  // Return true if the gradients of all of `replicas` are on their way to
  // Part(), and if all of them have pushed `step`: no pass of theirs can fail
  // any more.
  bool IsTaken(int64_t step, const std::vector<int>& replicas) const
      ABSL_LOCKS_EXCLUDED(mu_);
  bool Has(int64_t step, const std::vector<int>& replicas) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // The part of this device in the sum of a pack, which goes to sum() and its
  // copy on the host.
  struct Part {
    std::vector<const float*> terms;
    std::vector<Device::Event*> written;

    DevicePeer::Pack pack;  // names the vectors above
  };
  // Returns it for `replicas`, ascending, which are taken; of none: zeros.
  std::unique_ptr<Part> PartOf(size_t pack, const std::vector<int>& replicas)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Makes sum() the sum of the gradients of `replicas`, ascending, which are
  // taken; of none: zeros. Returns when it is there.
  //   Unavailable  the device was lost.
  absl::Status AddUp(const std::vector<int>& replicas)
      ABSL_LOCKS_EXCLUDED(mu_, device_mu_);

  // The sum of all workers' gradients, or of this one's.
  SumOnDevice& sum() ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_) { return *sum_; }
  // Copies the sum on the host to the packs in which gradients travel
  // otherwise.
  void CopyTo(const GradientPacks& packs,
              std::vector<std::vector<float>>& sums) const;

  // Enqueues the mean, the sum divided by `replicas`, in place of the gradients
  // of the last pass, where the model's variables have them: for updates that
  // are made on the device.
  //   Unavailable  the device was lost.
  absl::Status MakeMean(int replicas) ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);

 private:
  // A variable's elements in the array of all gradients; none if it is frozen.
  struct Place {
    size_t first = 0;
    size_t elements = 0;
  };
  struct Replica {
    Array<float> gradients;
    std::vector<std::unique_ptr<Device::Event>> written;  // one for each pack
    // Both are about the present step.
    bool is_taken = false;
    bool has_pushed = false;
  };
  struct Expected {
    TrainingParameters::SyncStep step;
    DevicePart part;
    Replica* replica = nullptr;
  };

  DeviceGradients(Device& device, absl::Span<float> gradients)
      : device_(device), gradients_(gradients) {}

  // Returns the place for a replica's gradients; null if the step is over or
  // has them.
  absl::StatusOr<Replica*> PlaceOf(const TrainingParameters::SyncStep& step)
      ABSL_LOCKS_EXCLUDED(mu_) ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);
  // Forgets the gradients of the steps before.
  absl::Status BeginStep(int64_t step) ABSL_LOCKS_EXCLUDED(mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);
  absl::Status ExpectLocked(const TrainingParameters::SyncStep& step,
                            const DevicePart& part) ABSL_LOCKS_EXCLUDED(mu_)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_mu_);
  // Returns the replica's gradients, if it has some of `step`.
  const Replica* Find(int64_t step, int replica) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  Device& device_;
  const absl::Span<float> gradients_;         // a pass writes them
  std::vector<Place> places_;                 // index: variable
  std::vector<DeviceTraining::Piece> packs_;  // index: pack
  std::unique_ptr<SumOnDevice> sum_;

  absl::Mutex device_mu_;  // taken before mu_
  std::optional<Expected> expected_ ABSL_GUARDED_BY(device_mu_);

  mutable absl::Mutex mu_;
  std::vector<int> share_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_taken_ ABSL_GUARDED_BY(mu_);
  int64_t step_ ABSL_GUARDED_BY(mu_) = -1;
  // The thread of the passes alone writes what a replica has in memory, before
  // it is taken.
  std::map<int, Replica> replicas_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_DEVICE_GRADIENTS_H_
