#ifndef PARASOL_TESTS_SIMULATION_GROUP_GROUP_WORKER_H_
#define PARASOL_TESTS_SIMULATION_GROUP_GROUP_WORKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/metrics.h"
#include "tests/simulation/group/group_auditor.h"
#include "tests/simulation/group/group_claims.h"
#include "tests/simulation/group/process_threads.h"
#include "tests/simulation/group/simulated_endpoint.h"
#include "tests/simulation/process.h"
#include "tests/simulation/session.h"
#include "tests/simulation/world.h"
#include "worker/group/group_parameters.h"
#include "worker/group/state/group_state.h"

namespace parasol::simulation {

// A worker that has variables: the real GroupState and GroupParameters
// with their thread, and the models of WorkerTask and SyncTrainingLoop around
// them.
class GroupWorker : public Process {
 public:
  // Parts that the workers of a schedule share.
  struct Cluster {
    ThreadTurns& turns;
    ProtocolPoints& points;
    GroupAuditor& auditor;
    SimulatedEndpoint::Lookup lookup;
    // Called by worker 0 when it knows the run: StateKeeper::Join().
    std::function<void(GroupWorker&)> join_keeper;
    // Called when the worker has left; `result` is how it ends.
    std::function<void(GroupWorker&, const absl::Status& result)> has_left;
  };

  GroupWorker(World& world, int index, int number, const Cluster& cluster);
  ~GroupWorker() override;

  void Start() override { session_.Join(); }
  void Ended() override;

  // SIGTERM.
  void Terminate();
  bool was_told_to_end() const { return was_told_to_end_; }
  // Finishes the step that others wait for,
  // and leaves.
  void End(const absl::Status& result);

  SimulatedEndpoint& endpoint() { return endpoint_; }
  ProcessThreads& threads() { return threads_; }
  // Returns null before the run is known.
  GroupState* state() { return state_.get(); }
  const Registration& registration() const { return session_.registration(); }

  // Looks whether the state has changed.
  void Observe();
  // Calls `run` on a thread of the process of its own.
  void RunThread(std::function<void()> run);

  static std::string AddressOf(int index);

 private:
  enum class Stage { kIdle, kPulling, kInStep };

  // Returns the number of steps that it reports.
  int64_t steps() const {
    return parameters_ == nullptr ? 0 : parameters_->steps();
  }
  void OnRegistered(const Registration& registration);
  void CheckVariables(const std::string& run_id, uint64_t layout);
  void OnState(const wire::HeartbeatResponse& state);
  void BeginLoop();
  void OnNews();
  void BeginStep();
  void TakeValues();
  // Has each device compute that is free, if there are replicas for it.
  void ComputeNext();
  void Compute(int replica);
  void Push(int replica);
  void CheckStep();
  // Looks now and then how long the worker has waited.
  void Watch();
  void Fail(const absl::Status& status);
  void StopParameters();
  void AwaitEnd();
  void Leave();

  const Cluster cluster_;
  MetricsRegistry registry_;
  ProcessThreads threads_;
  SimulatedEndpoint endpoint_;
  Session session_;
  GroupClaims claims_;
  std::unique_ptr<GroupState> state_;
  std::unique_ptr<GroupParameters> parameters_;
  std::vector<std::thread> more_threads_;

  GroupState::Version seen_;
  bool has_begun_ = false;
  bool is_failing_ = false;  // tells the chief of an error
  bool is_ending_ = false;
  bool is_stopping_ = false;  // the parameters are
  bool is_lost_ = false;
  bool was_told_to_end_ = false;
  absl::Status result_;

  Stage stage_ = Stage::kIdle;
  int64_t step_ = 0;
  absl::Time waits_since_;
  // The wait that the last look has found to be a long one.
  absl::Time long_wait_ = absl::InfinitePast();
  std::vector<std::vector<float>> values_;
  std::set<int> computed_;
  int computing_ = 0;  // number of replicas
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_GROUP_GROUP_WORKER_H_
