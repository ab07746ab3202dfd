#ifndef PARASOL_COORDINATOR_ORDERS_H_
#define PARASOL_COORDINATOR_ORDERS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cluster/checkpoint/checkpoint_schedule.h"
#include "coordinator/coordinator_options.h"
#include "coordinator/job_phases.h"
#include "coordinator/membership.h"
#include "coordinator/order.h"
#include "coordinator/shards/leaving_ps.h"
#include "coordinator/shards/shard_board.h"
#include "coordinator/shards/shard_loads.h"
#include "coordinator/steps/followed_files.h"
#include "coordinator/steps/run_evaluations.h"
#include "coordinator/steps/step_grants.h"

namespace parasol {

// Reason that keeps a chief from going on, in one line, and what kind of thing
// bounds the job by it; no text: nothing does.
struct Trouble {
  std::string text = {};
  wire::Finding::Kind kind = wire::Finding::KIND_UNSPECIFIED;
};

// Orders of a chief: loads, checkpoints, and the last checkpoint of a chief
// that was told to end. Decides what is ordered and when, and what follows from
// the results. Pure.
class Orders {
 public:
  // The parts of the job by which orders are decided.
  struct Job {
    const JobPhases& phases;
    const Membership& membership;
    const StepGrants& grants;
    const RunEvaluations& evaluations;
    // The files of a training set that grows; null: it does not.
    const FollowedFiles* files = nullptr;
    // True if shards have standbys; and if one that is not served has a standby
    // with all of it, whose process may yet act.
    bool has_standbys = false;
    bool may_be_acted_for = false;
  };

  // `options` must outlive this object. The ps have, or are given first, the
  // learning rate `rate` in the place of the job's.
  Orders(const CoordinatorOptions& options, std::optional<double> rate,
         absl::Time now);

  // Notes that the chief is told to end: one more checkpoint follows, if there
  // is something to keep.
  void RequestStop(absl::Time now);
  bool stop_requested() const { return stop_requested_at_.has_value(); }
  // Returns true if a chief that was told to end waits for a standby to act for
  // a lost ps, so that the last checkpoint has what that has acknowledged.
  bool AwaitsStandby(const Job& job, absl::Time now) const;
  // Returns true if the chief was told to end and has nothing left to order.
  bool stopped() const { return stopped_; }
  // Notes that a ps asks for a checkpoint with which it may leave.
  void AskToLeave(uint64_t ps, absl::Time now);
  // Forgets a ps that is gone.
  void Forget(uint64_t ps) { leaving_.Forget(ps); }
  // Forgets failed checkpoints when training is over, so that the final
  // checkpoint is tried for the whole time even if the disk was full before.
  void StartOver();

  // Returns the next order, if there is any. One order is carried out at a
  // time.
  std::optional<Order> Next(const Job& job, ShardBoard& board, absl::Time now);
  // Returns true if there may be a next order.
  bool MayHaveNext(const Job& job, absl::Time now) const;
  CallsInVain InVain(const Order& order, const Job& job,
                     const ShardBoard& board, absl::Time now) const;
  // Take the results of orders. Return what follows: nothing at once (nullopt),
  // that the job may go on (OK), that the chief gives up (Unavailable), or that
  // the job fails.
  std::optional<absl::Status> LoadDone(const LoadOrder::Target& target,
                                       const absl::Status& status,
                                       ShardBoard& board, absl::Time now);
  std::optional<absl::Status> CheckpointDone(const CheckpointOrder& order,
                                             const absl::Status& status,
                                             const Job& job, ShardBoard& board,
                                             absl::Time now);

  const CheckpointSchedule& schedule() const { return schedule_; }
  const LeavingPs& leaving() const { return leaving_; }
  // The order that fails.
  const Trouble& trouble() const { return trouble_; }
  // The rate that the ps have been given in the place of the job's.
  std::optional<double> given_rate() const { return given_rate_; }

 private:
  std::optional<Order> NextStop(const Job& job, const ShardBoard& board,
                                absl::Time now);
  std::optional<Order> NextLoad(const Job& job, const ShardBoard& board,
                                absl::Time now);
  bool IsCheckpointDue(const Job& job, absl::Time now) const;
  // Returns true if a worker of synchronous training may have sent gradients of
  // the last step that are not applied yet.
  bool AwaitsLastReports(const Job& job, absl::Time now) const;
  // Returns true if a worker may soon complete steps that it was granted.
  bool AwaitsLastSteps(const Job& job, const ShardBoard& board,
                       absl::Time now) const;
  // Returns true if the checkpoint of a chief that was told to end would have
  // something that the newest checkpoint lacks.
  bool HasNews(const Job& job) const;
  // Returns true if the newest checkpoint lacks steps that are known.
  bool HasSteps(const Job& job) const;
  bool AwaitsNobody(const Membership& membership) const;
  // Has shards that stay with a checkpoint go on, when the ps that left with it
  // has a successor.
  void EndStay(ShardBoard& board);
  CheckpointOrder OrderCheckpoint(const Job& job, const ShardBoard& board,
                                  absl::Time now);
  std::optional<absl::Status> CheckpointFailed(int64_t step,
                                               const absl::Status& status,
                                               wire::JobPhase phase,
                                               absl::Time now);

  const CoordinatorOptions& options_;
  const bool is_synchronous_;
  CheckpointSchedule schedule_;
  ShardLoads loads_;
  LeavingPs leaving_;
  std::optional<double> given_rate_;
  Trouble trouble_;
  std::optional<absl::Time> stop_requested_at_;
  bool stop_ordered_ = false;
  // True if the checkpoint being written may await a step of workers.
  bool may_await_workers_ = false;
  bool stopped_ = false;
};

// Longest time that the final checkpoint of synchronous training waits for the
// workers to say that all that they have sent is applied. A worker that has
// sent to a ps that was lost since never says so.
inline constexpr absl::Duration kLastReportLimit = absl::Seconds(2);
// Longest time that the last checkpoint of a chief that was told to end waits
// for the workers to complete the steps that they were granted.
inline constexpr absl::Duration kLastStepsLimit = absl::Seconds(1);
// How long a chief that was told to end waits for a standby to act for a lost
// ps, so that its checkpoint has all: a lease, and what follows it.
inline constexpr absl::Duration kStandbyLimit = absl::Seconds(20);

}  // namespace parasol

#endif  // PARASOL_COORDINATOR_ORDERS_H_
