#ifndef PARASOL_COORDINATOR_COORDINATOR_H_
#define PARASOL_COORDINATOR_COORDINATOR_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cluster/checkpoint/evaluation_log.h"
#include "cluster/checkpoint/store_checkpoint.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/job_account.h"
#include "coordinator/job_phases.h"
#include "coordinator/job_view.h"
#include "coordinator/membership.h"
#include "coordinator/order.h"
#include "coordinator/orders.h"
#include "coordinator/shards/acting_board.h"
#include "coordinator/shards/shard_board.h"
#include "coordinator/shards/standby_board.h"
#include "coordinator/steps/run_evaluations.h"
#include "coordinator/steps/step_grants.h"
#include "coordinator/task_id.h"
#include "proto/chief.pb.h"

namespace parasol {

// The decisions of the chief: the members of the cluster, the phase of the job,
// the steps that each worker may do, what has to be loaded, and when a
// checkpoint is written. Pure: messages and the time go in, answers and orders
// come out. The caller carries the orders out and reports their results.
class Coordinator {
 public:
  using Options = CoordinatorOptions;

  // The things that time has changed.
  struct Ticked {
    // Tasks whose leases ran out.
    std::vector<TaskId> lost;
    // Warnings for the log that have come up since the last tick.
    std::vector<std::string> warnings;
    // The calls that are in vain for the order that was given last, should it
    // still be carried out.
    CallsInVain in_vain;
    // True if a chief that was told to end waits for a standby to act, and has
    // shards loaded for that.
    bool awaits_standby = false;
  };
  // The things that others act upon when messages have come.
  struct News {
    // A number that changes whenever a claim whose answer was no news may be
    // answered with news. A claim that waits need not be asked again before.
    int64_t claims = 0;
    // True if there may be an order to carry out.
    bool may_have_order = false;
    // The step of the newest checkpoint.
    std::optional<int64_t> newest_checkpoint = std::nullopt;
  };

  Coordinator(Options options, absl::Time now);

  // The rpcs of proto/chief.proto, with their errors. Register()'s answer lacks
  // the intervals and the directory.
  absl::StatusOr<wire::RegisterResponse> Register(
      const wire::RegisterRequest& request, absl::Time now);
  absl::StatusOr<wire::HeartbeatResponse> Heartbeat(
      const wire::HeartbeatRequest& request, absl::Time now);
  absl::StatusOr<wire::GetPlacementResponse> GetPlacement(
      const wire::GetPlacementRequest& request) const;
  // Names the awaited tasks in the answer only if the request does not wait: at
  // the end of a wait, Status() does.
  absl::StatusOr<wire::ClaimStepsResponse> ClaimSteps(
      const wire::ClaimStepsRequest& request, absl::Time now);
  absl::Status ReportFailure(const wire::ReportFailureRequest& request,
                             absl::Time now);
  absl::Status Leave(const wire::LeaveRequest& request, absl::Time now);
  // Returns the answer to GetStatus, without the checkpoint's path.
  wire::JobStatus Status(absl::Time now) const;

  // Takes the evaluations of the run, in ascending order of their steps: all
  // that there are, each time. Returns lines for the log about what they have
  // changed.
  std::vector<std::string> Evaluated(absl::Span<const Evaluation> evaluations,
                                     absl::Time now);

  // Takes what was found of a training set that grows, where the options have
  // `followed`. Returns false while no more files are to be taken.
  bool Follow(const FollowedLook& look, absl::Time now);

  // Lets time pass. Call it often: after a pause of half a lease or more the
  // chief is taken to have stood still, and the leases are extended by the
  // pause.
  Ticked Tick(absl::Time now);
  News NewsAt(absl::Time now) const;

  // Returns the next order, if there is any. One order is carried out at a
  // time: report its result before asking for the next one.
  std::optional<Order> NextOrder(absl::Time now);
  void Done(const OrderResult& result, absl::Time now);
  // Returns the checkpoints that keep_best has a use for now.
  KeptCheckpoints Kept() const { return evaluations_.Kept(); }

  // The standbys that the chief keeps. The caller records them before it
  // answers a heartbeat that has a report of one (StandbyBoard::AnswerTo()).
  StandbyBoard& standbys() { return standbys_; }

  // A ps of which another one believes that it is gone.
  struct Suspect {
    int ps_index = 0;
    // 0: this chief has heard of no process there.
    uint64_t incarnation = 0;
    std::string address = {};
  };
  // Returns the ps that would be acted for if they were known to be gone, among
  // those whose streams have ended (HeartbeatRequest.lost_primary). Each is
  // there once, however often it is named.
  std::vector<Suspect> Suspects(const wire::HeartbeatRequest& request) const;
  // Notes that nobody listens at the suspect's address: its host is told to act
  // with the next heartbeat. Returns false if another process has come there,
  // and nothing is noted.
  bool NoteGone(const Suspect& suspect, absl::Time now);

  // Begins the end of the chief: grants no more steps, and orders one more
  // checkpoint if there is something to keep.
  void RequestStop(absl::Time now);

  // Brings the job's end forward to the steps that are granted, at least one,
  // once it trains.
  void RequestEnd(absl::Time now);

  // Returns how the chief ends; nullopt while it must not end.
  //   OK                  the job is complete and the tasks have left.
  //   FailedPrecondition  the job failed.
  //   InvalidArgument     the job failed: its first or last checkpoint can't be
  //                       written to the directory.
  //   Unavailable         a ps or all workers stayed away too long, or a ps did
  //                       not write its part of such a checkpoint.
  //   Cancelled           RequestStop().
  std::optional<absl::Status> Outcome(absl::Time now) const;

 private:
  // Enters the next phase if what has changed allows it.
  void Advance(absl::Time now);
  // Returns true for a lease: tasks of an earlier chief may yet come back.
  bool IsNew() const { return last_tick_ - start_ < options_.lease; }
  // Returns true while the job can't begin without all workers.
  bool NeedsAllWorkers() const;
  bool AwaitsWorkers() const;
  // Returns true while steps are made, or would be.
  bool MayTrain() const;
  // Returns true if the job ends because all workers have done their part.
  bool HaveWorkersLeft() const;
  void Depart(const TaskId& id, uint64_t incarnation, absl::Time now);
  // Aborted if the task has heard of a newer chief than this one.
  absl::Status CheckNewestChief(const wire::Task& task) const;
  // Returns true if these are the run and the layout of this chief.
  bool IsOurs(const std::string& run_id, uint64_t layout) const;
  StepGrants::Look LookAtGrants() const;
  std::string CollectiveAddress(const TaskId& id,
                                const Membership::Member& member) const;
  // Returns FailedPrecondition if the worker knows batches that there are not:
  // its process has to start again.
  absl::Status CheckBatches(const wire::ClaimStepsRequest& request) const;
  // Lists the workers that sum gradients among themselves.
  void AddMembers(wire::ClaimStepsResponse& response) const;
  JobView View() const;
  Orders::Job ForOrders() const;
  // The parts of Register() and Heartbeat() that are about ps.
  absl::Status CheckEntry(const wire::RegisterRequest& request, absl::Time now);
  void Enter(const wire::RegisterRequest& request, bool is_new, absl::Time now);
  void HearPs(const wire::HeartbeatRequest& request, absl::Time now,
              wire::HeartbeatResponse& response);
  // Names the lost ps that this ps is to act for.
  void AddActingOrders(const wire::Task& host, absl::Time now,
                       wire::HeartbeatResponse& response) const;
  // Returns OK if a process that acts for a lost ps may have its place.
  //   FailedPrecondition  it is not wanted there, or no more.
  absl::Status CheckActing(const wire::RegisterRequest& request,
                           absl::Time now) const;
  // Notes that a ps's process is gone, with those that acted in it.
  void LoseActing(int host, absl::Time now);
  // Returns `status`, but AlreadyExists instead of FailedPrecondition for a
  // process that somebody acts for: it comes back when it has started again.
  absl::Status ForActedFor(const wire::Task& task, absl::Status status) const;
  // Returns true if nobody is at a ps's place, and its host is to act for it.
  bool IsActingWanted(int ps_index, absl::Time now) const;
  // Returns true if a shard that is not ready has a standby on a live ps.
  bool MayBeActedFor() const;
  // Returns true if a lost ps, should its process come back, has what nobody
  // has now: a shard's standby, or a shard for which it acts.
  bool MayBringBack(int host, absl::Time now) const;
  // Returns true if a process of its own has to wait for the one that acts.
  bool MayActingReturn(int ps_index, absl::Time now) const;
  // Gives up checkpoints to hand over with, where nobody waits any more.
  void EndHandOvers(absl::Time now);
  wire::StandbyPlace PlaceAt(size_t host_shard) const;
  // Adds loads from standbys in processes that are gone.
  void AddLostStandbys(const Order& order, CallsInVain& in_vain) const;
  // Takes a ps's report of its shard's standby, and names the place for it.
  void HearOfStandby(const wire::HeartbeatRequest& request,
                     wire::HeartbeatResponse& response);
  std::optional<size_t> ShardOfPs(int ps_index) const;
  // Completes an order to load: which standbys the shards are restored from.
  // Leaves out those whose standby's ps is yet to come back.
  void AddStandbys(LoadOrder& order);
  // Notes the result of an order. Returns what follows, as Orders does.
  std::optional<absl::Status> Note(const LoadResult& result, absl::Time now);
  std::optional<absl::Status> Note(const CheckpointResult& result,
                                   absl::Time now);

  const Options options_;
  Membership membership_;
  ShardBoard board_;
  StandbyBoard standbys_;
  ActingBoard acting_;
  // Incarnations of those that act, and are to leave with a checkpoint.
  std::set<uint64_t> handing_over_;
  StepGrants grants_;
  RunEvaluations evaluations_;
  std::optional<FollowedData> followed_;
  Orders orders_;
  // The order that was given last.
  std::optional<Order> order_;
  JobAccount account_;
  bool end_requested_ = false;
  // Indices of the workers that have left in good order, and are not back.
  std::set<int> left_workers_;
  const int worker_places_;
  const absl::Time start_;
  absl::Time last_tick_;
  JobPhases phases_;
};

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_COORDINATOR_H_
