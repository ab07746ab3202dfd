#ifndef PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_
#define PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "ml/layer/variable_spec.h"
#include "proto/chief.pb.h"
#include "proto/job.pb.h"
#include "worker/mirrored/mirrored_parameters.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/state_keeper.h"

namespace parasol {

// Addresses of a worker of a cluster without ps.
struct MirroredPlace {
  // Place in the groups of workers, and its address for peers. Must outlive the
  // worker.
  CollectiveEndpoint* endpoint = nullptr;
  std::string collective_address = {};
  // Address at which worker 0 takes the chief's orders for the variables; the
  // system chooses the port if it is 0. Empty for the other workers.
  std::string state_listen_address = {};
};

// Returns OK if a worker that has a MirroredPlace, or not, can train the job.
//   InvalidArgument  its cluster has ps and the chief's none, or the other way
//                    round.
absl::Status CheckHasPlace(const job::Job& job, bool has_place);

// The parts that only a worker of a cluster without ps has: the variables
// and, at worker 0, what loads and saves them. Used by one thread.
//
// Shutdown: the parameters that it made are destroyed, then Leave(), then this
// object.
class MirroredWorker {
 public:
  struct Options {
    wire::Task task;
    std::string chief_address;
    absl::Duration chief_timeout = absl::Minutes(5);
    MirroredPlace place;
  };

  // Listens.
  //   InvalidArgument  the address can't be listened on.
  static absl::StatusOr<std::unique_ptr<MirroredWorker>> Start(
      Options options, Clock& clock, MetricsRegistry& metrics);

  // Returns the port of StateKeeper; 0 if there is none.
  int state_port() const { return keeper_ == nullptr ? 0 : keeper_->port(); }

  // Makes room for the variables of the job that the chief has answered the
  // registration with, and lets the chief order worker 0 to load them. Says in
  // the log how the job is trained, here on `device`. Polls `cancelled`. Errors
  // are those of StateKeeper::Join().
  absl::Status Prepare(std::vector<VariableSpec> variables,
                       const wire::RegisterResponse& registration,
                       const std::string& device,
                       std::function<bool()> cancelled);

  // Returns the parameters of the training loop. Requires Prepare().
  std::unique_ptr<MirroredParameters> MakeParameters();

  // Tells the chief that worker 0's variables are there no more.
  void Leave();

 private:
  MirroredWorker(Options options, Clock& clock, MetricsRegistry& metrics)
      : options_(std::move(options)), clock_(clock), metrics_(metrics) {}

  const Options options_;
  Clock& clock_;
  MetricsRegistry& metrics_;
  std::unique_ptr<MirroredState> state_;
  std::unique_ptr<StateKeeper> keeper_;  // null: another worker
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_MIRRORED_WORKER_H_
