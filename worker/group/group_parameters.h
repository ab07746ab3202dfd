#ifndef PARASOL_WORKER_GROUP_GROUP_PARAMETERS_H_
#define PARASOL_WORKER_GROUP_GROUP_PARAMETERS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "cluster/collective/collective.h"
#include "parameters/device_parts.h"
#include "parameters/training_parameters.h"
#include "proto/chief.pb.h"
#include "worker/group/device_gradients.h"
#include "worker/group/gradient_packs.h"
#include "worker/group/group_member.h"
#include "worker/group/group_rows.h"
#include "worker/group/group_sums.h"
#include "worker/group/state/group_state.h"
#include "worker/group/step_gradients.h"
#include "worker/group/step_maker.h"
#include "worker/store/device_variables.h"

namespace parasol {

// The parameters of a worker whose group has the variables: what the ps are to
// synchronous training. Each worker has all variables (GroupState). The
// workers sum a step's gradients among themselves, over all replicas in
// ascending order, and each applies the means: all get the same bits, which are
// also what ps would compute.
//
// The chief names the workers that take part, a group, and their replicas
// (GroupMember). The gradients that were pushed to a step stay when its group
// ends, so only replicas that changed hands compute theirs again. A step
// is made when all sums of it are there, never in part. So two workers are one
// step apart at most, and the next group goes on with the later one.
//
// Thread-safe. Shutdown: Stop(), then the destructor joins the thread.
class GroupParameters : public TrainingParameters, public DeviceParts {
 public:
  struct Options : GroupMember::Options {
    int replicas = 1;  // all of the job
    int64_t bytes_per_pack = 0;
    // PushedRows::Options; null: tables' rows are part of the state.
    std::shared_ptr<TrainingParameters> tables = nullptr;
    bool tables_in_step = false;
    // The gradients of variables on each of this worker's devices, where they
    // stay, and NCCL adds them; none: they are in host memory, where gradients
    // of rows always are. Must outlive the parameters. All workers have as many
    // devices.
    std::vector<DeviceGradients*> on_devices = {};
    // The variables of the state, if they are on the device of `on_devices`,
    // the only one, where the sums stay and are applied; null: in host memory.
    // Must outlive the parameters.
    DeviceVariables* variables_on_device = nullptr;
  };

  // All references must outlive this object.
  GroupParameters(Options options, GroupState& state,
                  CollectiveEndpoint& endpoint, Clock& clock,
                  MetricsRegistry& metrics);
  ~GroupParameters() override;

  // Takes the chief's answer to a claim: the group, if it is a new one. Does
  // not block.
  void Hear(const wire::ClaimStepsResponse& answer) { member_.Hear(answer); }
  // Returns the number of steps that the state has had; 0 if there is none.
  int64_t steps() const { return std::max<int64_t>(0, state_.version().step); }
  // Returns the version of a group that has ended and that the chief has yet to
  // replace, as in ClaimStepsRequest; 0 if there is none.
  int64_t broken() const { return member_.broken(); }

  using TrainingParameters::Pull;
  using TrainingParameters::Push;
  // The outcome has the step that the values are of. It may be before
  // min_updates, if the worker was lost that had made those steps.
  std::unique_ptr<Pending> Pull(PullRequest request) override;
  void Expect(const SyncStep& step, const DevicePart& part) override;
  // Requires that `request.sync` is set. Complete when the step is.
  std::unique_ptr<Pending> Push(PushRequest request) override;
  // Returns the other members of the group, and who has the tables.
  Awaited Unanswered() const override;
  // Ends the thread as GroupMember::Stop() says.
  void Stop() override { member_.Stop(); }
  void AbortIfStopping() { member_.AbortIfStopping(); }

 private:
  class PendingPull;
  class PendingPush;

  std::unique_ptr<GroupSums> MakeSums(Clock& clock);
  std::unique_ptr<GroupRows> MakeRows(Clock& clock);
  // Waits for a step, until Stop() gives it up.
  absl::Status AwaitStep(int64_t step);

  const Options options_;
  GroupState& state_;
  const GradientPacks packs_;
  StepGradients gradients_;
  const std::unique_ptr<GroupSums> sums_;
  const std::unique_ptr<GroupRows> rows_;
  StepMaker steps_;
  GroupMember member_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_GROUP_PARAMETERS_H_
