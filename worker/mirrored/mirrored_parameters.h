#ifndef PARASOL_WORKER_MIRRORED_MIRRORED_PARAMETERS_H_
#define PARASOL_WORKER_MIRRORED_MIRRORED_PARAMETERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/parallel_calls.h"
#include "cluster/client/parameter_client.h"
#include "cluster/collective/collective.h"
#include "cluster/replica_sum/row_accumulator.h"
#include "ml/device/device_peer.h"
#include "proto/chief.pb.h"
#include "worker/local/device_variables.h"
#include "worker/mirrored/device_gradients.h"
#include "worker/mirrored/gradient_packs.h"
#include "worker/mirrored/mirrored_state.h"
#include "worker/mirrored/step_gradients.h"
#include "worker/mirrored/step_group.h"
#include "worker/mirrored/table_pushes.h"

namespace parasol {

// The parameters of a worker in multi-worker mirrored training: what the ps are
// to synchronous training. Each worker has all variables (MirroredState). The
// workers sum a step's gradients among themselves, over all replicas in
// ascending order, and each applies the means: the same bits everywhere, and
// those of ps.
//
// The chief names the workers that take part, a group, and their replicas. A
// thread joins each group, agrees with it on the newest state that a member
// has, and makes steps with it until the group ends: a member is lost, or the
// chief names another group. The gradients that were pushed to the step stay,
// so only those of replicas that changed hands are computed again.
//
// A step is made when all sums of it are there, never in part. So two workers
// are one step apart at most, and the next group goes on with the later one.
//
// Thread-safe. Shutdown: Stop(), then the destructor joins the thread.
class MirroredParameters : public ParameterClient {
 public:
  struct Options {
    wire::Task task;
    int replicas = 1;  // all of the job
    int64_t bytes_per_pack = 0;
    // Plans the sums; null: each pack has the algorithm that suits it.
    std::shared_ptr<const AllReducePlanner> planner;
    // Longest time that all members of a group take to connect.
    absl::Duration join_limit = absl::Seconds(10);
    // Time between the end of a group and the report of it. The chief may know
    // by itself.
    absl::Duration report_delay = absl::Milliseconds(200);
    // Longest time for which Stop() lets a step go on whose gradients of this
    // worker are all there.
    absl::Duration finish_limit = absl::Seconds(2);
    // The pushes of tables' rows, which ps have; null: they are part of the
    // state. Must outlive the parameters.
    TablePushes* tables = nullptr;
    // The gradients of variables on each of this worker's devices, where they
    // stay, and NCCL adds them; none: they are in host memory, as those of rows
    // always are. Must outlive the parameters. All workers have as many
    // devices.
    std::vector<DeviceGradients*> on_devices = {};
    // The variables of the state, if they are on the device of `on_devices`,
    // the only one, where the sums stay and are applied; null: in host memory.
    // Must outlive the parameters.
    DeviceVariables* variables_on_device = nullptr;
  };

  // All references must outlive this object.
  MirroredParameters(Options options, MirroredState& state,
                     CollectiveEndpoint& endpoint, Clock& clock,
                     MetricsRegistry& metrics);
  ~MirroredParameters() override;

  // Takes the chief's answer to a claim: the group, if it is a new one. Does
  // not block.
  void Hear(const wire::ClaimStepsResponse& answer) ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of steps that the state has had; 0 if there is none.
  int64_t steps() const { return std::max<int64_t>(0, state_.version().step); }
  // Returns the version of a group that has ended and that the chief has yet to
  // replace, as in ClaimStepsRequest; 0 if there is none.
  int64_t broken() const ABSL_LOCKS_EXCLUDED(mu_);

  using ParameterClient::Pull;
  using ParameterClient::Push;
  // The outcome has the step that the values are of. It may be before
  // min_updates, if the worker was lost that had made those steps.
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  void Expect(const SyncStep& step, const DevicePart& part) override;
  // Requires that `request.sync` is set. Complete when the step is.
  std::unique_ptr<Pending> Push(PushRequest request) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // Does nothing: no ps has the variables.
  absl::Status Update(const wire::GetPlacementResponse&) override {
    return absl::OkStatus();
  }
  // Returns the names of the other members, "worker/1", or of this one if it is
  // alone, the last one with why
  // the group before has ended, if no step was made since.
  std::vector<std::string> Unanswered() const override ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the last time at which this worker's group loaded or copied
  // variables, which take as long as they take.
  absl::Time last_loading() const override ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the thread, after the step that the others wait for this worker to
  // complete, if there is one. A join or a copy of variables ends at once.
  void Stop() override ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a group that Stop() does not let go on. A thread that waits for
  // something else calls it now and then.
  void AbortIfStopping() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class PendingPull;
  class PendingPush;

  using Group = StepGroup;

  static absl::Status SupersededError() {
    return absl::CancelledError("another assignment of replicas");
  }

  void Run();
  // Blocks until the chief has named a group later than `version`. Returns
  // false when the object was stopped.
  bool AwaitGroup(int64_t version, Group& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes steps with a group until it ends; returns why.
  absl::Status RunGroup(const Group& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the group with the planner, if there is one. Ends the worker if its
  // plans for these members are wrong: no other group mends that.
  absl::StatusOr<CollectiveGroup> WithPlanner(CollectiveGroup group);
  absl::Status MakeSteps(const Group& group, Collective& collective);
  absl::Status MakeStep(const Group& group, Collective& collective);
  absl::Status SumPacks(const Group& group, int64_t step,
                        Collective& collective);
  // Connects this worker's devices with each other and with those of the
  // group's others, if NCCL adds: rank r's are r * n and following.
  absl::Status MeetDevices(const Group& group, Collective& collective);
  absl::Status JoinMeeting(const Group& group, Collective& collective,
                           const std::string& meeting);
  // The same as SumPacks() for gradients that are on the devices, and lets the
  // rows leave meanwhile. Packs leave while the passes of this worker's last
  // replicas go on, in the same order on all ranks, and no rank goes on before
  // all have the sums: NCCL itself may wait for a rank that is gone.
  absl::Status SumOnDevices(const Group& group, int64_t step,
                            Collective& collective);
  // Returns which of `replicas` each device has taken of the step; nullopt if
  // no device has taken one.
  std::optional<std::vector<std::vector<int>>> PartsOnDevices(
      int64_t step, const std::vector<int>& replicas) const;
  absl::Status AddOnDevices(const Group& group, int64_t step,
                            const std::vector<std::vector<int>>& parts,
                            Collective& collective);
  // Begins the sums of all packs on a device, where `replicas` are.
  absl::Status BeginPacks(size_t device, const std::vector<int>& replicas,
                          const std::function<absl::Status()>& may_go_on);
  // Calls `call` for all devices at the same time, with what says whether it
  // may go on: no longer than `may_go_on` and the calls for the others.
  absl::Status OnAllDevices(
      const std::function<absl::Status()>& may_go_on,
      const std::function<absl::Status(
          size_t device, const std::function<absl::Status()>& may_go_on)>&
          call);
  // Returns why the group has ended if it does so soon, otherwise `why`: NCCL
  // says that a rank is gone, the group's connections say which.
  absl::Status Named(const absl::Status& why, const Collective& collective);
  // Ends this worker if a device of its own fails: the next group would end for
  // it, too.
  void EndIfDeviceIsLost();
  // Returns when all ranks of the group have come here, and what this one began
  // before is complete.
  absl::Status AwaitAll(const Group& group, Collective& collective);
  // Has the gradients of rows travel, to the other members or to ps.
  absl::Status LetRowsLeave(const Group& group, int64_t step,
                            Collective& collective);
  absl::Status GatherRows(const Group& group, int64_t step,
                          Collective& collective);
  // Finds out, with tables on ps and in step, when all ranks have begun the
  // step. They have made the one before it then, and rows' gradients may leave
  // (TablePushes).
  void AskWhoIsThere(const Group& group, int64_t step, Collective& collective)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Sends the gradients of rows that ps have.
  absl::Status SendRows(const Group& group, int64_t step,
                        Collective& collective);
  // Returns when ps have made the step of their tables, and all ranks know it:
  // the variables' may be made.
  absl::Status AwaitTables(const Group& group, Collective& collective);
  // Makes the step that ps have made of their tables, with the sums that are
  // here, if this worker leaves before its group has made it and no later group
  // has begun it again.
  void MakeLeftStep();
  // Ends the worker if its pushes to ps have failed; returns `pushed`.
  absl::Status EndIfNotDone(Collective& collective, const absl::Status& pushed);
  // Returns the error with which the group or this worker has ended.
  absl::Status CheckMayGoOn(const Group& group, Collective& collective)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Refuses sums of gradients that are not finite, if the job ends at a loss
  // that is not: all members alike, as they have the same sums.
  //   OutOfRange  names the variable and its element.
  absl::Status CheckFinite(int64_t step);
  // Ends the group on all ranks if the rows that they have gathered are none.
  absl::Status CheckOthersRows(Collective& collective);
  // The same of sums that are in host memory.
  absl::Status CheckSumsFinite(int64_t step) const;
  absl::Status Apply(LocalParameters& parameters);
  // Enqueues the update of the variables on the device.
  absl::Status ApplyOnDevice();
  // Blocks until this worker's gradients of a pack or a table are there.
  //   Cancelled  the group is over, or the object was stopped.
  //   any other  as for Collective::status().
  absl::Status AwaitGradients(const Group& group, Collective& collective,
                              const std::function<bool()>& are_there)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Counts an operation that is about to begin; returns what it calls when it
  // has ended.
  Collective::Done CountPending(const Group& group) ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until no operation uses memory of this object, and lets go of the
  // group, which has ended on this rank.
  void Release(Collective& collective, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until a first group has agreed on the state, or this worker's part is
  // over. Returns false after `limit`.
  bool AwaitAgreed(absl::Duration limit) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for a step, until Stop() gives it up.
  absl::Status AwaitStep(int64_t step) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_since_ < absl::InfiniteFuture();
  }
  bool IsOver(const Group& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return heard_ > group.version || IsStopping();
  }
  // Notes that variables are being loaded or copied; returns false if the group
  // is over.
  bool NoteLoading(const Group& group) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteEnd(const Group& group, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Counts ends with InvalidArgument. Returns true if so many of the last ones
  // had it, without a step between them, that the next one will.
  bool IsPermanent(const absl::Status& why);
  // Ends the present group on this rank, and with it on all.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  MirroredState& state_;
  CollectiveEndpoint& endpoint_;
  Clock& clock_;
  Counter groups_joined_;
  Counter groups_lost_;

  const GradientPacks packs_;
  // Used by the thread alone: sums of each pack, every worker's rows of each
  // table, and the tables' accumulators.
  std::vector<std::vector<float>> sums_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::unique_ptr<RowAccumulator>> row_sums_;
  // The last step whose tables ps have made in step, and the group that made
  // it.
  struct TablesMade {
    int64_t step = 0;
    int64_t group = 0;
  };
  std::optional<TablesMade> tables_made_;
  std::vector<std::string> nothing_;  // answers to AskWhoIsThere()
  std::vector<std::string> met_;      // answers to MeetDevices(), AwaitAll()
  // Index: device. None: not met, or it is the only one.
  std::vector<std::unique_ptr<DevicePeer>> peers_;
  std::unique_ptr<ParallelCalls> calls_;  // null: gradients are on the host
  int invalid_ends_ = 0;      // the last ends with InvalidArgument, ...
  int64_t invalid_step_ = 0;  // ... all at this step

  mutable absl::Mutex mu_;
  StepGradients gradients_ ABSL_GUARDED_BY(mu_);
  Group group_ ABSL_GUARDED_BY(mu_);
  int64_t heard_ ABSL_GUARDED_BY(mu_) = 0;  // the chief's newest version
  // The version of the group that is being joined; 0 if none is.
  int64_t joining_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t broken_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<Collective> collective_ ABSL_GUARDED_BY(mu_);
  bool makes_steps_ ABSL_GUARDED_BY(mu_) = false;  // all have the variables
  bool has_agreed_ ABSL_GUARDED_BY(mu_) = false;   // a group has, once
  absl::Status last_end_ ABSL_GUARDED_BY(mu_);     // OK: a step was made since
  absl::Time last_loading_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  int pending_ ABSL_GUARDED_BY(mu_) = 0;  // operations of steps
  // The last step of which AskWhoIsThere() has heard that all have begun it.
  int64_t all_began_ ABSL_GUARDED_BY(mu_) = -1;
  // The last group of which an operation has ended with an error.
  int64_t failed_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time stopping_since_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_MIRRORED_MIRRORED_PARAMETERS_H_
