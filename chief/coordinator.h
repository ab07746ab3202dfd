#ifndef PARASOL_CHIEF_COORDINATOR_H_
#define PARASOL_CHIEF_COORDINATOR_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/leaving_ps.h"
#include "chief/membership.h"
#include "chief/shard_board.h"
#include "chief/step_plan.h"
#include "chief/task_id.h"
#include "chief/worker_reports.h"
#include "cluster/checkpoint/checkpoint_contents.h"
#include "cluster/checkpoint/checkpoint_schedule.h"
#include "cluster/job/training_end.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// The decisions of the chief: the members of the cluster, the phase of the job,
// the steps that each worker may do, what has to be loaded, and when a
// checkpoint is written. Pure: messages and the time go in, answers and orders
// come out. The caller carries the orders out and reports their results.
//
//   WAITING_FOR_PS ─► LOADING ─► TRAINING ─► FINISHING ─► COMPLETE
//          ▲─────────────┘           any of these ─► FAILED
//
// The loss of a ps after LOADING changes no phase: its shard alone is loaded
// again when it is back, while the others go on.
class Coordinator {
 public:
  // Number of failures in a row of a load that end the job.
  static constexpr int kMaxLoadFailures = 60;
  // Time for which a job that was complete when the chief started stays, so
  // that tasks that start at the same time learn that there is nothing to do.
  static constexpr absl::Duration kCompleteLinger = absl::Seconds(5);
  // Longest time that the final checkpoint of synchronous training waits for
  // the workers to say that all that they have sent is applied. A worker that
  // has sent to a ps that was lost since never says so.
  static constexpr absl::Duration kLastReportLimit = absl::Seconds(2);

  struct Options {
    job::Job job;
    std::string run_id;
    // The checkpoint that the run is resumed from; nullopt in a new run.
    std::optional<durable::CheckpointManifest> resumed;
    // True if that checkpoint has the same parts on the same shards as now: a
    // ps that holds the run can keep what it has.
    bool same_sharding = true;
    // True if that checkpoint is the last one of this job: nothing is left to
    // do.
    bool already_complete = false;
    std::vector<ShardBoard::Shard> shards;
    // The variables and tables in the manifests of checkpoints to be written.
    CheckpointContents contents;
    // The tasks of the cluster and their addresses, which may be empty.
    std::map<TaskId, std::string> tasks;
    absl::Duration lease = absl::Seconds(10);
    // Time for which a missing ps, or the absence of all workers, is borne.
    absl::Duration ps_timeout = absl::Minutes(5);
    absl::Duration worker_timeout = absl::Minutes(5);
    // Time for which the first and the last checkpoint are tried again.
    absl::Duration checkpoint_timeout = absl::Minutes(10);
    // Time that tasks have to leave when the job has ended.
    absl::Duration finish_timeout = absl::Seconds(30);
  };

  // An order to bring these shards' variables to these processes.
  struct LoadOrder {
    struct Target {
      size_t shard = 0;
      uint64_t incarnation = 0;
    };
    std::vector<Target> targets;
    // True: load the newest checkpoint of the run that can be read. False: draw
    // the initial values.
    bool from_checkpoint = false;
  };
  // An order to snapshot all shards and commit `manifest`, which lacks only the
  // files and the time.
  struct CheckpointOrder {
    durable::CheckpointManifest manifest;
    // True (synchronous training): each shard takes its snapshot after exactly
    // the manifest's global_step updates, which it may have to await. False:
    // each shard's snapshot is taken as it is.
    bool at_global_step = false;
  };
  using Order = std::variant<LoadOrder, CheckpointOrder>;

  Coordinator(Options options, absl::Time now);

  // The rpcs of proto/chief.proto, with their errors.
  absl::Status Register(const wire::RegisterRequest& request, absl::Time now);
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request, absl::Time now);
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() const;
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request, absl::Time now);
  // Returns true if the answer says something that the worker does not know; it
  // then ends the request's wait.
  static bool IsNews(const wire::ClaimStepsRequest& request,
                     const wire::ClaimStepsResponse& response);
  absl::Status ReportFailure(const wire::ReportFailureRequest& request,
                             absl::Time now);
  absl::Status Leave(const wire::LeaveRequest& request, absl::Time now);
  // Returns the answer to GetStatus, without the checkpoint's path.
  wire::JobStatus Status() const;

  // Lets time pass and returns the tasks whose leases ran out. Call it often:
  // after a pause of half a lease or more the chief is taken to have stood
  // still, and the leases are extended by the pause.
  std::vector<TaskId> Tick(absl::Time now);

  // Returns the next order, if there is any. One order is carried out at a
  // time: report its result before asking for the next one.
  std::optional<Order> NextOrder(absl::Time now);
  void LoadDone(const LoadOrder::Target& target, const absl::Status& status,
                absl::Time now);
  void CheckpointDone(const CheckpointOrder& order, const absl::Status& status,
                      absl::Time now);

  // Returns true if the checkpoint that is being written was ordered while the
  // job trained and may await a step that does not come any more: the last one
  // is done. Its calls are to be cancelled, so that the final checkpoint
  // follows.
  bool IsCheckpointObsolete(absl::Time now) const;

  // Begins the end of the chief: grants no more steps, and orders one more
  // checkpoint if there is something to keep.
  void RequestStop(absl::Time now);

  // Returns how the chief ends; nullopt while it must not end.
  //   OK                  the job is complete and the tasks have left.
  //   FailedPrecondition  the job failed.
  //   InvalidArgument     the job failed: its first or last checkpoint can't be
  //                       written to the directory.
  //   Unavailable         a ps or all workers stayed away too long, or a ps did
  //                       not write its part of such a checkpoint.
  //   Cancelled           RequestStop().
  std::optional<absl::Status> Outcome(absl::Time now) const;

  std::optional<int64_t> newest_checkpoint() const {
    return schedule_.newest_step();
  }

 private:
  // Enters the next phase if what has changed allows it.
  void Advance(absl::Time now);
  void Enter(wire::JobPhase phase, absl::Time now);
  void Fail(std::string failure, absl::Time now,
            absl::StatusCode code = absl::StatusCode::kFailedPrecondition);
  bool HasEnded() const;
  void Depart(const TaskId& id, uint64_t incarnation, absl::Time now);
  bool MayGrant() const;
  bool AwaitsReturns() const;
  std::vector<std::string> AwaitedTasks() const;
  std::vector<std::string> MissingTasks() const;
  bool IsCheckpointDue(absl::Time now) const;
  // Returns true if a worker of synchronous training may have sent gradients of
  // the last step that are not applied yet.
  bool AwaitsLastReports(absl::Time now) const;
  CheckpointOrder OrderCheckpoint();
  void CheckpointFailed(int64_t step, const absl::Status& status,
                        absl::Time now);
  // Returns true if the chief was told to end and the checkpoint being written
  // awaits a step of workers that have left. When the shards give up, another
  // checkpoint is taken at the step they reached.
  bool IsCutInVain() const;
  std::optional<Order> NextStopOrder();

  const Options options_;
  Membership membership_;
  ShardBoard board_;
  const std::unique_ptr<StepPlan> plan_;
  TrainingEnd end_;
  CheckpointSchedule schedule_;
  WorkerReports reports_;
  LeavingPs leaving_;
  // The steps that each live worker's last claim reported.
  std::map<uint64_t, int64_t> claimed_at_;

  const absl::Time start_;
  absl::Time last_tick_;
  wire::JobPhase phase_ = wire::WAITING_FOR_PS;
  absl::Time phase_since_;
  std::string failure_;
  absl::StatusCode failure_code_ = absl::StatusCode::kOk;
  // JobStatus's.
  std::string trouble_;
  std::optional<absl::Status> gave_up_;
  bool stop_requested_ = false;
  bool stop_ordered_ = false;
  // True if the checkpoint being written is at a step that workers have yet to
  // reach.
  bool snapshot_needs_workers_ = false;
  bool stopped_ = false;
  int load_failures_ = 0;
  absl::Time next_load_ = absl::InfinitePast();
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_COORDINATOR_H_
