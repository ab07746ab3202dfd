#ifndef PARASOL_TESTS_SIMULATION_WORKER_PROCESS_H_
#define PARASOL_TESTS_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/chief.pb.h"
#include "tests/simulation/process.h"
#include "tests/simulation/ps_process.h"
#include "tests/simulation/session.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A worker: the model of WorkerTask, of PlacementFollower and of the streams to
// the ps. What a ps has not answered is sent again, under the same sequence.
// The derived class is the training loop.
class WorkerProcess : public Process {
 public:
  WorkerProcess(World& world, int index, int number);

  void Start() override { session_.Join(); }

  // SIGTERM: begins no step any more, and leaves when what it has in flight is
  // answered, or is for a ps that refuses it.
  void Terminate();

  // Returns the job that the worker works on; nullptr until it has registered.
  const JobChoice* job() const {
    return has_job_ ? &session_.registration().job : nullptr;
  }

 protected:
  using Answered = std::function<void(const OperationResult&)>;

  // Begins to train; called once, when there is a placement.
  virtual void BeginLoop() = 0;
  virtual void StopLoop() = 0;
  // Returns what the worker reports to the chief as completed.
  virtual int64_t completed_steps() const = 0;
  // Writes into a registration what the worker knows of its steps.
  virtual void Describe(wire::RegisterRequest& request) {
    request.set_completed_steps(completed_steps());
  }
  // A ps has another process than before.
  virtual void OnMoved() {}
  // Gives up what is not computed yet, and returns true if nothing is in flight
  // that the worker would wait for.
  virtual bool Drain() = 0;

  // Sends an operation to a shard until it is answered, then calls `done`.
  void Send(int shard, Operation operation, Answered done);
  // Ends the process because of an error of the loop.
  void Fail(const absl::Status& status);
  bool has_failed() const { return has_failed_; }

 private:
  // Leaves when nothing is in flight; looks now and then.
  void LeaveWhenDrained();
  void OnRegistered(const Registration& registration);
  // Starts again if the run or the layout is not the one that it has joined.
  void CheckVariables(const std::string& run_id, uint64_t layout);
  void OnState(const wire::HeartbeatResponse& state);
  void AskForPlacement();
  void TakePlacement(const absl::StatusOr<wire::GetPlacementResponse>& answer);
  void SendUntil(absl::Time give_up, int shard, Operation operation,
                 Answered done);

  Session session_;
  bool has_job_ = false;
  bool is_placed_ = false;
  bool is_asking_ = false;
  bool has_failed_ = false;
  // The time since which a ps has refused, or could not be reached.
  absl::Time refused_since_ = absl::InfiniteFuture();
  int64_t placement_version_ = -1;
  std::string run_id_;
  uint64_t layout_ = 0;
  // The process that has each shard.
  std::vector<uint64_t> ps_incarnations_;
  std::vector<TaskId> ps_places_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_WORKER_PROCESS_H_
