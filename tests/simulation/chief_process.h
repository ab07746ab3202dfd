#ifndef PARASOL_TESTS_SIMULATION_CHIEF_PROCESS_H_
#define PARASOL_TESTS_SIMULATION_CHIEF_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "coordinator/coordinator.h"
#include "proto/chief.pb.h"
#include "tests/simulation/process.h"
#include "tests/simulation/session.h"
#include "tests/simulation/shard_holder.h"
#include "tests/simulation/world.h"

namespace parasol::simulation {

// A chief: the real Coordinator, resumed from the simulated directory's
// manifests, and the model of ChiefServer and OrderExecutor around it.
class ChiefProcess : public Process {
 public:
  ChiefProcess(World& world, int number, const JobChoice& job);

  void Start() override;

  // The rpcs of proto/chief.proto.
  void Register(const wire::RegisterRequest& request,
                const World::Done<Registration>& done);
  void Heartbeat(const wire::HeartbeatRequest& request,
                 const World::Done<wire::HeartbeatResponse>& done);
  void GetPlacement(const wire::GetPlacementRequest& request,
                    const World::Done<wire::GetPlacementResponse>& done);
  void ClaimSteps(const wire::ClaimStepsRequest& request,
                  const World::Done<wire::ClaimStepsResponse>& done);
  void ReportFailure(const wire::ReportFailureRequest& request,
                     const World::Done<wire::ReportFailureResponse>& done);
  void Leave(const wire::LeaveRequest& request,
             const World::Done<wire::LeaveResponse>& done);

  // SIGTERM: writes a last checkpoint, and ends.
  void Terminate();

  const JobChoice& job() const { return job_; }
  absl::Time now() const { return world().Now(*this); }
  // Returns its state; nullptr until it has read the manifests.
  const Coordinator* coordinator() const { return coordinator_.get(); }

 private:
  struct WaitingClaim {
    wire::ClaimStepsRequest request;
    absl::Time deadline;
    World::Done<wire::ClaimStepsResponse> done;
  };
  struct Loading {
    LoadOrder order;
    // Steps of the checkpoints to try, newest first; -1: initial values.
    std::vector<int64_t> sources;
    size_t source = 0;
    std::vector<absl::Status> results;
    std::vector<size_t> pending;  // positions in order.targets
    size_t unanswered = 0;
  };
  struct Writing {
    CheckpointOrder order;
    Checkpoint checkpoint;
    // Numbers of the shards' updates (synchronous training).
    std::vector<Updates> bounds;
    // True once the answers are wanted no more.
    std::shared_ptr<bool> is_cancelled = std::make_shared<bool>(false);
    absl::Status failure;
    size_t unanswered = 0;
  };

  // Returns the state with which it starts, from the manifests.
  absl::StatusOr<Coordinator::Options> Resume();
  // Returns the history whose evaluations count; nullopt: all do.
  std::optional<RunHistory> HistoryOf(const Coordinator::Options& options);
  // Looks now and then whether the directory is still this chief's.
  void Renew();
  // Returns false, and ends the process, if the directory has another owner;
  // `read`: whether it can be read.
  bool CheckOwner(const absl::Status& read);
  void Tick();
  void LookAtEvaluations();
  // Takes the next file of a set that grows. Returns false if the process has
  // ended.
  bool LookForFiles();
  void CancelMootCalls(const CallsInVain& in_vain);
  void CancelSnapshots();
  // Something has changed: claims that wait may have news, and there may be an
  // order.
  void Changed();
  void AnswerClaims();
  void CarryOutOrders();
  void CarryOut(LoadOrder order);
  absl::StatusOr<std::vector<int64_t>> RunCheckpoints();
  void LoadFromSource();
  void EndSource();
  void EndLoad();
  void CarryOut(CheckpointOrder order);
  // Returns the order to a shard's ps, without the cut.
  SnapshotCall CallOf(size_t shard) const;
  void ChooseCut();
  void TakeCut();
  void SnapshotShards();
  void EndSnapshot(const absl::Status& status);
  void EndSnapshots();
  // Returns the place of the process to which a shard was loaded last.
  const TaskId& PsOf(size_t shard) const { return places_[shard]; }
  // Records what is kept of standbys.
  void RecordStandbys();

  const JobChoice job_;
  Coordinator::Options options_;
  std::vector<TaskId> places_;  // index: the shard
  std::unique_ptr<Coordinator> coordinator_;
  // The files that were taken, as the follower has them.
  std::optional<FollowedFiles> files_;
  // Number of evaluations that the coordinator has heard of.
  size_t evaluations_ = 0;
  std::vector<WaitingClaim> claims_;
  bool answering_ = false;
  // The news that the waiting claims were last asked about, and the time at
  // which the first of them has waited long enough.
  int64_t claim_news_ = -1;
  absl::Time next_expiry_ = absl::InfiniteFuture();
  std::optional<Loading> loading_;
  int64_t orders_ = 0;
  std::optional<Writing> writing_;
};

}  // namespace parasol::simulation

#endif  // PARASOL_TESTS_SIMULATION_CHIEF_PROCESS_H_
