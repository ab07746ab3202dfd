#ifndef PARASOL_WORKER_STORE_DEVICE_STEPS_H_
#define PARASOL_WORKER_STORE_DEVICE_STEPS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "worker/store/mirrored_variables.h"

namespace parasol {

// The steps of replicas that have their variables and gradients in the memory
// of their devices, each replica on a thread of its own. A push says that the
// replica's gradients of a step are enqueued on its device. The thread whose
// push is the last one enqueues the update on all devices, while the others
// wait: so it alone uses the devices. A push is over when the update is
// enqueued.
//
// There is nothing to pull but the number of the step. Thread-safe; a push is
// waited for by the thread of its replica.
class DeviceSteps : public TrainingParameters, public DeviceParts {
 public:
  struct Options {
    // Number of steps that have been done.
    int64_t first_step = 0;
    // The replicas' devices, for messages; one for each.
    std::vector<std::string> devices;
  };

  // `variables` must outlive this object, and is used by nobody else meanwhile.
  DeviceSteps(MirroredVariables& variables, Options options);

  using TrainingParameters::Pull;
  using TrainingParameters::Push;
  // Requires a request of nothing. The outcome has the number of steps that
  // have been enqueued.
  std::unique_ptr<Pending> Pull(PullRequest request) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void Expect(const SyncStep& step, const DevicePart& part) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Requires PushRequest::sync and nothing else, and that each replica expects
  // and pushes once per step. Errors of the push are
  // what MirroredVariables::Update() returns, and
  //   Cancelled  Stop() was called.
  std::unique_ptr<Pending> Push(PushRequest request) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the replicas whose gradients others wait for: "replica/1 (cuda:1)".
  Awaited Unanswered() const override ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class PendingStep;

  // Returns how step `step` has ended; nullopt if it has not.
  std::optional<absl::Status> ResultOf(int64_t step) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::optional<absl::Status> Await(int64_t step, absl::Duration limit)
      ABSL_LOCKS_EXCLUDED(mu_);

  MirroredVariables& variables_;
  const Options options_;

  mutable absl::Mutex mu_;
  // The step in progress.
  int64_t step_ ABSL_GUARDED_BY(mu_);
  // The parts of it that are expected and that have come, one for each replica.
  std::vector<std::optional<DevicePart>> expected_ ABSL_GUARDED_BY(mu_);
  std::vector<std::optional<DevicePart>> parts_ ABSL_GUARDED_BY(mu_);
  size_t collected_ ABSL_GUARDED_BY(mu_) = 0;
  // An update's error, or Cancelled.
  absl::Status ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace parasol

#endif  // PARASOL_WORKER_STORE_DEVICE_STEPS_H_
