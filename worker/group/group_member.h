#ifndef PARASOL_WORKER_GROUP_GROUP_MEMBER_H_
#define PARASOL_WORKER_GROUP_GROUP_MEMBER_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"
#include "worker/group/group_membership.h"
#include "worker/group/group_run.h"
#include "worker/group/state/group_state.h"
#include "worker/group/step_maker.h"

namespace parasol {

// A worker as a member of groups: a thread joins each group that the chief
// names, agrees with it on the newest state that a member has, and makes steps
// with it until the group ends: a member is lost, or the chief names another
// group.
//
// Thread-safe. Shutdown: Stop(), then the destructor joins the thread.
class GroupMember {
 public:
  struct Options {
    wire::Task task;  // the worker's
    // Plans the sums; null: each has the algorithm that suits it.
    std::shared_ptr<const AllReducePlanner> planner;
    // Longest time that all members of a group take to connect.
    absl::Duration join_limit = absl::Seconds(10);
    // Time between the end of a group and the report of it. The chief may know
    // by itself.
    absl::Duration report_delay = absl::Milliseconds(200);
    // Longest time for which Stop() lets a step go on whose gradients of this
    // worker are all there.
    absl::Duration finish_limit = absl::Seconds(2);
  };

  // All references must outlive this object.
  GroupMember(Options options, GroupState& state, StepMaker& steps,
              CollectiveEndpoint& endpoint, Clock& clock,
              MetricsRegistry& metrics);
  ~GroupMember();

  // Takes the chief's answer to a claim: the group, if it is a new one. Does
  // not block.
  void Hear(const wire::ClaimStepsResponse& answer) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns GroupMembership::broken().
  int64_t broken() const ABSL_LOCKS_EXCLUDED(mu_);
  // Has a step look whether this worker's gradients are there.
  void LookAgain() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the other members, and the last time at which the group loaded or
  // copied variables.
  TrainingParameters::Awaited Unanswered() const ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until a first group has agreed on the state, or this worker's part is
  // over. Returns false after `limit`.
  bool AwaitAgreed(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the thread, after the step that the others wait for this worker to
  // complete, if there is one. A join or a copy of variables ends at once.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a group that Stop() does not let go on. A thread that waits for
  // something else calls it now and then.
  void AbortIfStopping() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  // Blocks until the chief has named a group later than `group`, and makes it
  // that one. Returns false when the object was stopped.
  bool AwaitGroup(StepGroup& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes steps with a group until it ends; returns why.
  absl::Status RunGroup(const StepGroup& group) ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::shared_ptr<GroupRun>> Join(const StepGroup& group)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status MakeSteps(GroupRun& run) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the group with the planner, if there is one. Ends the worker if its
  // plans for these members are wrong: no other group mends that.
  absl::StatusOr<CollectiveGroup> WithPlanner(CollectiveGroup group);
  // Notes that variables are being loaded or copied; returns false if the group
  // is over.
  bool NoteLoading(const StepGroup& group) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteEnd(const StepGroup& group, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the present group on this rank, and with it on all.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  GroupState& state_;
  StepMaker& steps_;
  CollectiveEndpoint& endpoint_;
  Clock& clock_;
  Counter groups_joined_;
  Counter groups_lost_;

  mutable absl::Mutex mu_;
  GroupMembership membership_ ABSL_GUARDED_BY(mu_);
  // The version of the group that is being joined; 0 if none is.
  int64_t joining_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<GroupRun> run_ ABSL_GUARDED_BY(mu_);
  absl::Time last_loading_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_MEMBER_H_
