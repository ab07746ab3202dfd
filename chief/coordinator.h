#ifndef PARASOL_CHIEF_COORDINATOR_H_
#define PARASOL_CHIEF_COORDINATOR_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "chief/coordinator_options.h"
#include "chief/job_phases.h"
#include "chief/membership.h"
#include "chief/shards/leaving_ps.h"
#include "chief/shards/shard_board.h"
#include "chief/shards/shard_loads.h"
#include "chief/steps/run_evaluations.h"
#include "chief/steps/step_grants.h"
#include "chief/task_id.h"
#include "chief/watch/worker_paces.h"
#include "chief/worker_reports.h"
#include "cluster/checkpoint/checkpoint_schedule.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "cluster/progress/curve_points.h"
#include "ml/optimizer/learning_rate.h"
#include "proto/checkpoint.pb.h"
#include "proto/chief.pb.h"

namespace parasol {

// The decisions of the chief: the members of the cluster, the phase of the job,
// the steps that each worker may do, what has to be loaded, and when a
// checkpoint is written. Pure: messages and the time go in, answers and orders
// come out. The caller carries the orders out and reports their results.
class Coordinator {
 public:
  // Number of failures in a row of a load that end the job.
  static constexpr int kMaxLoadFailures = ShardLoads::kMaxFailures;
  // Longest time that the final checkpoint of synchronous training waits for
  // the workers to say that all that they have sent is applied. A worker that
  // has sent to a ps that was lost since never says so.
  static constexpr absl::Duration kLastReportLimit = absl::Seconds(2);

  using Options = CoordinatorOptions;

  // An order to bring these shards' variables to these processes.
  struct LoadOrder {
    using Target = ShardLoads::Target;
    std::vector<Target> targets;
    // True: load the newest checkpoint of the run that can be read. False: draw
    // the initial values. A process that holds the shard keeps its values.
    bool from_checkpoint = false;
    // The newest process at each ps's place, by index: its place epoch. To be
    // recorded before variables are loaded, so that no later chief trusts the
    // variables of an older process.
    std::map<int, int64_t> ps_epochs = {};
    // Number of the cluster's steps that are known to be complete.
    int64_t global_step = 0;
    // The learning rate in the place of the job's, if it was reduced.
    std::optional<double> learning_rate = std::nullopt;
  };
  // An order to snapshot all shards and commit `manifest`, which lacks only the
  // files and the time.
  struct CheckpointOrder {
    durable::CheckpointManifest manifest;
    // True (synchronous training): all shards take their snapshots after the
    // same number of updates, which becomes the manifest's global_step: the
    // largest that any of them has had, and no less than global_step says.
    // Shards whose pushes are asynchronous all the same (hybrid) are taken as
    // they are.
    // False: each shard's snapshot is taken as it is.
    bool at_one_step = false;
    // True if a shard that is behind the others will get there: a worker is
    // alive. Only with `at_one_step`.
    bool may_await = false;
    // The process that each shard is on.
    std::vector<uint64_t> incarnations = {};
    // True if the shards are to take no update behind the snapshot until they
    // are loaded again: the chief, or a ps, leaves with this checkpoint, and
    // whoever else leaves before its successor is there loses nothing either.
    bool stay = false;
  };
  using Order = std::variant<LoadOrder, CheckpointOrder>;

  Coordinator(Options options, absl::Time now);

  // The rpcs of proto/chief.proto, with their errors. Register()'s answer lacks
  // the intervals and the directory.
  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request, absl::Time now);
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request, absl::Time now);
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement() const;
  // Names the awaited tasks in the answer only if the request does not wait: at
  // the end of a wait, NameAwaited() does.
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request, absl::Time now);
  // Returns a number that changes whenever a claim whose answer was no news may
  // be answered with news. A claim that waits need not be asked again before.
  int64_t claim_news() const { return grants_.news() + phases_.begun(); }
  // Names the tasks that a worker awaits that is granted nothing.
  void NameAwaited(wire::ClaimStepsResponse& response) const;
  // Returns true if there may be an order to carry out.
  bool MayHaveOrder(absl::Time now) const;
  absl::Status ReportFailure(const wire::ReportFailureRequest& request,
                             absl::Time now);
  absl::Status Leave(const wire::LeaveRequest& request, absl::Time now);
  // Returns the answer to GetStatus, without the checkpoint's path and the time
  // of the training.
  wire::JobStatus Status() const;
  // Returns the time for which the job has trained with this chief; nullopt
  // before that.
  std::optional<absl::Duration> Trained(absl::Time now) const {
    return phases_.Trained(now);
  }
  // Names the tasks that a job that has ended waits for, and for how long.
  void NameStaying(absl::Time now, wire::JobStatus& status) const;

  // Takes the evaluations of the run, in ascending order of their steps: all
  // that there are, each time. Returns lines for the log about what they have
  // changed.
  std::vector<std::string> Evaluated(absl::Span<const Evaluation> evaluations,
                                     absl::Time now);

  // Returns warnings for the log that have come up since the last call.
  std::vector<std::string> TakeWarnings() {
    return evaluations_.TakeWarnings();
  }

  // Lets time pass and returns the tasks whose leases ran out. Call it often:
  // after a pause of half a lease or more the chief is taken to have stood
  // still, and the leases are extended by the pause.
  std::vector<TaskId> Tick(absl::Time now);

  // Returns the next order, if there is any. One order is carried out at a
  // time: report its result before asking for the next one.
  std::optional<Order> NextOrder(absl::Time now);
  void LoadDone(const LoadOrder::Target& target, const absl::Status& status,
                absl::Time now);
  // `order` is as NextOrder() gave it, with the global_step that the checkpoint
  // has.
  void CheckpointDone(const CheckpointOrder& order, const absl::Status& status,
                      absl::Time now);
  // Returns the checkpoints that keep_best has a use for now.
  KeptCheckpoints Kept() const { return evaluations_.Kept(); }
  // Returns the shards whose calls for the order are in vain and are to be
  // cancelled. Their processes, which the order names, are gone or were
  // replaced, and one whose machine is gone never answers; or they have yet to
  // be loaded for a checkpoint. A checkpoint at one step is in vain as a whole:
  // the other shards may wait for a step that does not come before that one is
  // loaded.
  std::vector<size_t> ShardsInVain(const Order& order) const;
  // Returns true if the chief was told to end, and the checkpoint being
  // written, should it await a step of workers, awaits it in vain: they have
  // left.
  bool AwaitsNobody() const;

  // Returns true if the checkpoint that is being written was ordered while the
  // job trained and may await a step that does not come any more: the last one
  // is done. Its calls are to be cancelled, so that the final checkpoint
  // follows.
  bool IsCheckpointObsolete(absl::Time now) const;

  // Longest time that the last checkpoint of a chief that was told to end waits
  // for the workers to complete the steps that they were granted.
  static constexpr absl::Duration kLastStepsLimit = absl::Seconds(1);

  // Time that the checkpoint of a ps that leaves waits for what else is told to
  // end with it, and for the workers to report the steps that are acknowledged.
  static constexpr absl::Duration kLeaveDelay = absl::Milliseconds(200);

  // Longest time that training waits to begin for a ps that is told to end to
  // have gone.
  static constexpr absl::Duration kDepartureLimit = absl::Seconds(1);

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
  // Returns true for a lease: tasks of an earlier chief may yet come back.
  bool IsNew() const { return last_tick_ - start_ < options_.lease; }
  // Returns true while the job can't begin without all workers.
  bool NeedsAllWorkers() const;
  bool AwaitsWorkers() const;
  bool AwaitsDeparture(absl::Time now) const;
  // Returns the tasks that have not left, when the job has ended.
  std::vector<TaskId> Staying() const;
  void Depart(const TaskId& id, uint64_t incarnation, absl::Time now);
  // Aborted if the task has heard of a newer chief than this one.
  absl::Status CheckNewestChief(const wire::Task& task) const;
  // Returns true if these are the run and the layout of this chief.
  bool IsOurs(const std::string& run_id, uint64_t layout) const;
  std::map<int, int64_t> PsEpochs() const;
  // Returns the points of the curves; not known before the epochs are.
  CurvePoints Points() const {
    return CurvePoints(grants_.end().steps_per_epoch().value_or(0),
                       options_.job.summary().every_steps());
  }
  // Adds what workers have reported of their losses.
  void AddLosses(wire::JobStatus& status) const;
  StepGrants::Look LookAtGrants() const;
  // Lists the workers that sum gradients among themselves.
  void AddMembers(wire::ClaimStepsResponse& response) const;
  std::vector<std::string> AwaitedTasks() const;
  std::vector<std::string> MissingTasks() const;
  // Returns the names of these tasks for people, each once.
  std::vector<std::string> NamesOf(const std::vector<TaskId>& tasks) const;
  bool IsCheckpointDue(absl::Time now) const;
  // Looks at how far evaluations are behind.
  void WatchEvaluations(absl::Time now);
  // Adds how far they are.
  void AddEvaluations(wire::JobStatus& status) const;
  // Notes what is waited for now.
  void WatchWaiting(absl::Time now);
  void WatchPaces(absl::Time now);
  // Adds the tasks, and those that are absent.
  void AddTasks(wire::JobStatus& status) const;
  // Returns true if a worker of synchronous training may have sent gradients of
  // the last step that are not applied yet.
  bool AwaitsLastReports(absl::Time now) const;
  CheckpointOrder OrderCheckpoint(absl::Time now);
  void CheckpointFailed(int64_t step, const absl::Status& status,
                        absl::Time now);
  std::optional<Order> NextStopOrder(absl::Time now);
  // Returns true if a checkpoint of a chief that was told to end would have
  // something that the newest one lacks.
  bool HasNews() const;
  // Returns true if a live worker has granted steps that it has not completed,
  // as far as is known.
  bool HoldSteps() const;
  // Returns true if one may complete such steps soon.
  bool AwaitsLastSteps(absl::Time now) const;
  // Has shards that stay with a checkpoint go on, when the ps that left with it
  // has a successor.
  void EndStay();

  const Options options_;
  Membership membership_;
  ShardBoard board_;
  ShardLoads loads_;
  StepGrants grants_;
  CheckpointSchedule schedule_;
  RunEvaluations evaluations_;
  // The rate that the ps have been given.
  std::optional<double> given_rate_;
  // The rate by the job alone; nullopt if it has no optimizer.
  const std::optional<LearningRate> rate_;
  WorkerReports reports_;
  WorkerPaces paces_;
  const int worker_places_;
  LeavingPs leaving_;
  const absl::Time start_;
  absl::Time last_tick_;
  JobPhases phases_;
  // The value of JobStatus.trouble.
  std::string trouble_;
  // The thing that is waited for, and since when; empty if nothing is.
  std::string waits_for_;
  absl::Time waits_since_;
  bool stop_requested_ = false;
  absl::Time stop_requested_at_;
  // The time when the last ps has asked to leave for the first time.
  absl::Time leave_asked_at_ = absl::InfinitePast();
  bool stop_ordered_ = false;
  // True if the checkpoint being written may await a step of workers.
  bool may_await_workers_ = false;
  bool stopped_ = false;
};

}  // namespace parasol

#endif  // PARASOL_CHIEF_COORDINATOR_H_
