#ifndef PARASOL_WORKER_WORKER_PARAMETERS_H_
#define PARASOL_WORKER_WORKER_PARAMETERS_H_

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
#include "ml/layer/variable_spec.h"
#include "parameters/client/parameter_client.h"
#include "parameters/composition.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "worker/group/device_gradients.h"
#include "worker/group/group_parameters.h"
#include "worker/group/state/group_state.h"
#include "worker/group/state/state_keeper.h"
#include "worker/placement_follower.h"
#include "worker/step/replica_source.h"
#include "worker/store/device_variables.h"
#include "worker/sync_training_loop.h"
#include "worker/worker_device.h"

namespace parasol {

// Addresses of a worker that is a member of groups.
struct GroupPlace {
  // Place in the groups of workers, and its address for peers. Must outlive the
  // worker.
  CollectiveEndpoint* endpoint = nullptr;
  std::string collective_address = {};
  // Address at which worker 0 takes the chief's orders for the variables; the
  // system chooses the port if it is 0. Empty for the other workers.
  std::string state_listen_address = {};
  // True if there are ps, too.
  bool has_ps = false;
  // Index of the ps that worker 0 is to the chief: StatePlace().
  int state_place = 0;
};

// The parameters of a worker of a cluster, put together as its Composition
// says, and what follows from that for those around them. Used by one thread.
//
// Shutdown: the parameters that it made are destroyed, then Leave(), then this
// object, then the devices of Prepare().
class WorkerParameters {
 public:
  struct Options {
    wire::Task task;
    std::string chief_address;
    absl::Duration chief_timeout = absl::Minutes(5);
    absl::Duration ps_timeout = absl::Minutes(5);
    std::shared_ptr<const Trust> trust = nullptr;  // the worker's
    std::optional<GroupPlace> place;  // nullopt: it takes part in no group
    // Called as StateKeeper::Options::on_lost is.
    std::function<void(absl::Status)> on_lost = [](const absl::Status&) {};
    // Shows what ps are asked; must outlive the parameters. Null: nowhere.
    TraceRecorder* trace = nullptr;
  };

  // Listens.
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<WorkerParameters>> Start(
      Options options, Clock& clock, MetricsRegistry& metrics);

  // Returns the port of StateKeeper; 0 if there is none.
  int state_port() const { return keeper_ == nullptr ? 0 : keeper_->port(); }
  // Writes the address for peers into a registration.
  void Describe(wire::RegisterRequest& request) const;

  // Chooses the composition of the job that the chief has answered the
  // registration with, but for where values and sums are, which depends on the
  // devices.
  //   InvalidArgument  it was started for another strategy than the chief.
  absl::Status Choose(const job::Job& job);

  // Chooses the rest of it for `devices`, whose models it makes the ones to
  // train; makes room for the variables that this worker is to have, and lets
  // the chief order worker 0 to load them. Says in the log how the job is
  // trained. Polls `cancelled`. Requires Choose() for the registration's job.
  // Returns errors of StateKeeper::Join() and MakeAllReducePlanner(), and
  //   InvalidArgument    NCCL is not here, or a device is no CUDA device: says
  //                      what to choose.
  //   ResourceExhausted  a device or the host is full.
  absl::Status Prepare(const wire::RegisterResponse& registration,
                       std::vector<WorkerDevice>& devices,
                       std::function<bool()> cancelled);
  // Valid after Choose(), and whole after Prepare().
  const Composition& composition() const { return composition_; }

  // Returns the parameters of the training loop, of the shards of `placement`
  // where ps have something. Returns errors of ParameterClient::Create().
  absl::StatusOr<std::unique_ptr<TrainingParameters>> Make(
      const wire::GetPlacementResponse& placement);

  // Set what follows from the composition, once the parameters are made.
  void SetUp(SyncTrainingLoop::Options& options) const;
  void SetUp(ChiefReplicaSource::Options& options) const;
  void SetUp(PlacementFollower::Options& options) const;

  // Lets a checkpoint be written of what only this worker has, and may be there
  // no more afterwards. As StateKeeper::AwaitCheckpoint(); nothing for others
  // than worker 0, and where a worker that is left has all.
  void AwaitCheckpoint(absl::Duration limit);
  // Tells the chief that worker 0's variables are there no more.
  void Leave();

 private:
  WorkerParameters(Options options, Clock& clock, MetricsRegistry& metrics)
      : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

  // Returns OK if a worker with this place, or without one, can train the job.
  absl::Status CheckHasPlace() const;
  // Has the gradients of the variables of the device's model stay there, and
  // the variables as well if the composition says so.
  absl::Status KeepOnDevice(WorkerDevice& opened);
  absl::StatusOr<std::unique_ptr<ParameterClient>> MakeClient(
      const wire::GetPlacementResponse& placement);
  GroupParameters::Options GroupOptions() const;

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  job::Job job_;
  Composition composition_;
  std::vector<VariableSpec> variables_;
  // The gradients on each device; none: in host memory.
  std::vector<std::unique_ptr<DeviceGradients>> on_devices_;
  // Null: in host memory.
  std::unique_ptr<DeviceVariables> variables_on_device_;
  std::unique_ptr<GroupState> state_;                // null: ps have all
  std::unique_ptr<StateKeeper> keeper_;              // null: another worker
  std::shared_ptr<const AllReducePlanner> planner_;  // null: AUTO

  // Parts of what Make() has returned; null: there is none.
  ParameterClient* client_ = nullptr;
  GroupParameters* group_ = nullptr;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_PARAMETERS_H_
