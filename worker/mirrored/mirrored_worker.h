#ifndef PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_
#define PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "ml/device/device.h"
#include "ml/layer/variable_spec.h"
#include "ml/model/model.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "worker/local/device_variables.h"
#include "worker/mirrored/device_gradients.h"
#include "worker/mirrored/hybrid_parameters.h"
#include "worker/mirrored/mirrored_parameters.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/state_keeper.h"

namespace parasol {

// Addresses of a worker that has variables.
struct MirroredPlace {
  // Place in the groups of workers, and its address for peers. Must outlive the
  // worker.
  CollectiveEndpoint* endpoint = nullptr;
  std::string collective_address = {};
  // Address at which worker 0 takes the chief's orders for the variables; the
  // system chooses the port if it is 0. Empty for the other workers.
  std::string state_listen_address = {};
  // True if there are ps (hybrid).
  bool has_ps = false;
  // Index of the ps that worker 0 is to the chief: StatePlace().
  int state_place = 0;
};

// Returns the longest time that a step of the job may take; `ps_timeout` is
// that of the wait for ps.
absl::Duration StepTimeoutOf(const job::Job& job, absl::Duration ps_timeout);

// Returns OK if a worker with this place, or without one, can train the job.
//   InvalidArgument  it was started for another strategy than the chief.
absl::Status CheckHasPlace(const job::Job& job,
                           const std::optional<MirroredPlace>& place);

// The parts that only a worker has which has variables: these and, at worker 0,
// what loads and saves them. Used by one thread.
//
// Shutdown: the parameters that it made are destroyed, then Leave(), then this
// object, then the device of PrepareModel().
class MirroredWorker {
 public:
  struct Options {
    wire::Task task;
    std::string chief_address;
    absl::Duration chief_timeout = absl::Minutes(5);
    MirroredPlace place;
    // Called as StateKeeper::Options::on_lost is.
    std::function<void(absl::Status)> on_lost = [](const absl::Status&) {};
  };

  // Listens.
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<MirroredWorker>> Start(
      Options options, Clock& clock, MetricsRegistry& metrics);

  // Returns the port of StateKeeper; 0 if there is none.
  int state_port() const { return keeper_ == nullptr ? 0 : keeper_->port(); }

  // Has the gradients of the variables of `model`, which computes on `device`,
  // stay there if the job says that NCCL adds them, and the variables as well
  // if that is the only device and nothing needs the host, and returns the
  // model to train: `model` itself if no variable is trained, since then NCCL
  // has nothing to add. Called for each of the worker's devices, in their
  // order. Borrows `device`.
  //   InvalidArgument    NCCL is not here, or `device` is no CUDA device: says
  //                      what to choose.
  //   ResourceExhausted  device or host are full.
  absl::StatusOr<std::unique_ptr<Model>> PrepareModel(
      const job::Job& job, std::unique_ptr<Model> model, Device& device);
  // Returns true if gradients of variables stay on the devices.
  bool sums_on_device() const { return !on_devices_.empty(); }
  // Returns true if the device has the variables, too, and updates them.
  bool updates_on_device() const { return variables_on_device_ != nullptr; }

  // Makes room for the variables of the job that the chief has answered the
  // registration with, and lets the chief order worker 0 to load them. Says in
  // the log how the job is trained, here on `device`. Polls `cancelled`. Errors
  // are those of StateKeeper::Join() and MakeAllReducePlanner().
  absl::Status Prepare(std::vector<VariableSpec> variables,
                       const wire::RegisterResponse& registration,
                       const std::string& device,
                       std::function<bool()> cancelled);

  // Returns the parameters of the training loop. Requires Prepare().
  std::unique_ptr<MirroredParameters> MakeParameters();
  // Returns those of the hybrid strategy. `tables` is as for HybridParameters.
  std::unique_ptr<HybridParameters> MakeHybridParameters(
      std::unique_ptr<ParameterClient> tables);

  // Lets a checkpoint be written of worker 0's variables, which may be there no
  // more afterwards. As StateKeeper::AwaitCheckpoint(); nothing for others.
  void AwaitCheckpoint(absl::Duration limit) {
    if (keeper_ != nullptr) keeper_->AwaitCheckpoint(limit);
  }
  // Tells the chief that worker 0's variables are there no more.
  void Leave();

 private:
  MirroredParameters::Options ParametersOptions() const;
  MirroredWorker(Options options, Clock& clock, MetricsRegistry& metrics)
      : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  // The gradients on each device; none: in host memory.
  std::vector<std::unique_ptr<DeviceGradients>> on_devices_;
  // Null: in host memory.
  std::unique_ptr<DeviceVariables> variables_on_device_;
  std::unique_ptr<MirroredState> state_;
  std::unique_ptr<StateKeeper> keeper_;              // null: another worker
  std::shared_ptr<const AllReducePlanner> planner_;  // null: AUTO
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_
