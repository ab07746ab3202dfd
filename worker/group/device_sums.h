#ifndef PARASOL_WORKER_GROUP_DEVICE_SUMS_H_
#define PARASOL_WORKER_GROUP_DEVICE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/parallel_calls.h"
#include "ml/device/device_peer.h"
#include "worker/group/device_gradients.h"
#include "worker/group/group_sums.h"
#include "worker/group/packed_sums.h"
#include "worker/group/state/group_state.h"
#include "worker/store/device_variables.h"

namespace parasol {

// Sums of gradients that stay on this worker's devices, where NCCL adds them.
// Packs leave while the passes of this worker's last replicas go on, in the
// same order on all ranks, and no rank goes on before all have the sums: NCCL
// itself may wait for a rank that is gone. All workers have as many devices.
class DeviceSums : public GroupSums {
 public:
  struct Options {
    int replicas = 1;  // all of the job
    // The gradients on each device; at least one.
    std::vector<DeviceGradients*> devices;
    // The variables, if they are on the only device, where the sums stay and
    // are applied; null: in host memory.
    DeviceVariables* variables = nullptr;
  };

  // Borrows what the options name, and `state`, which ends with a device.
  DeviceSums(Options options, PackedSums on_host, GroupState& state,
             Clock& clock);

  void BeginGroup(GroupRun& run) override;
  // Connects this worker's devices with each other and with the ones of the
  // group's others: rank r's are r * n and following.
  absl::Status Meet(GroupRun& run) override;
  void EndGroup() override { peers_.clear(); }
  absl::Status Add(GroupRun& run, int64_t step,
                   absl::FunctionRef<absl::Status()> let_rows_leave) override;
  absl::Status CheckFinite(int64_t step) override;
  absl::Status Apply(ParameterStore& parameters) override;

 private:
  using MayGoOn = std::function<absl::Status()>;

  absl::Status JoinMeeting(GroupRun& run, const std::string& meeting);
  // Returns which of `replicas` each device has taken of the step; nullopt if
  // no device has taken one.
  std::optional<std::vector<std::vector<int>>> PartsOnDevices(
      int64_t step, const std::vector<int>& replicas) const;
  absl::Status AddOnDevices(GroupRun& run, int64_t step,
                            const std::vector<std::vector<int>>& parts,
                            absl::FunctionRef<absl::Status()> let_rows_leave);
  // Begins the sums of all packs on a device, where `replicas` are.
  absl::Status BeginPacks(size_t device, const std::vector<int>& replicas,
                          const MayGoOn& may_go_on);
  // Calls `call` for all devices at the same time, with what says whether it
  // may go on: no longer than `may_go_on` and the calls for the others.
  absl::Status OnAllDevices(
      const MayGoOn& may_go_on,
      const std::function<absl::Status(size_t device,
                                       const MayGoOn& may_go_on)>& call);
  // Returns why the group has ended if it does so soon, otherwise `why`: NCCL
  // says that a rank is gone, the group's connections say which.
  absl::Status Named(const absl::Status& why, const Collective& collective);
  // Ends this worker if a device of its own fails: the next group would end for
  // it, too.
  void EndIfDeviceIsLost();
  // Enqueues the update of the variables on the device.
  absl::Status ApplyOnDevice();

  const Options options_;
  PackedSums on_host_;
  GroupState& state_;
  Clock& clock_;
  ParallelCalls calls_;
  std::vector<std::string> met_;  // answers to Meet()
  // Index: device. None: not met, or it is the only one.
  std::vector<std::unique_ptr<DevicePeer>> peers_;
};

}  // namespace parasol

#endif  // PARASOL_WORKER_GROUP_DEVICE_SUMS_H_
