#include "worker/group/device_sums.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Number of times that a rank whose NCCL fails asks the group who is lost, and
// the time between two of them. A group looks at its connections each 50 ms.
constexpr int kNamingLooks = 30;
constexpr absl::Duration kNamingPause = absl::Milliseconds(10);

}  // namespace

DeviceSums::DeviceSums(Options options, PackedSums on_host, GroupState& state,
                       Clock& clock)
    : options_(std::move(options)),
      on_host_(std::move(on_host)),
      state_(state),
      clock_(clock),
      calls_(options_.devices.size()) {
  for (const DeviceGradients* const gradients : options_.devices) {
    CHECK_EQ(gradients->num_packs(), on_host_.packs().count());
  }
}

void DeviceSums::BeginGroup(GroupRun& run) {
  for (DeviceGradients* const device : options_.devices) {
    device->SetShare(run.group().replicas);
  }
}

absl::Status DeviceSums::OnAllDevices(
    const MayGoOn& may_go_on,
    const std::function<absl::Status(size_t device, const MayGoOn& may_go_on)>&
        call) {
  std::atomic<bool> has_failed = false;
  const auto all_go_on = [&]() -> absl::Status {
    if (has_failed) return absl::CancelledError("another device has failed");
    return may_go_on();
  };
  return calls_.Run([&](size_t device) {
    absl::Status result = call(device, all_go_on);
    if (!result.ok()) has_failed = true;
    return result;
  });
}

// The meeting's name travels on the group's connections: it belongs to this
// epoch, and no rank of another one hears of it.
absl::Status DeviceSums::Meet(GroupRun& run) {
  const CollectiveGroup& members = run.group().collective;
  if (options_.devices.size() * members.ranks.size() <= 1) {
    return absl::OkStatus();
  }
  std::string own;
  if (members.own_rank == 0) {
    const absl::StatusOr<std::string> meeting = DevicePeer::NewMeeting();
    if (!meeting.ok()) run.collective().Abort(meeting.status());
    ASSIGN_OR_RETURN(own, meeting);
  }
  run.collective().AllGather(own, &met_, run.Count());
  RETURN_IF_ERROR(run.collective().Await());
  const absl::Status joined = JoinMeeting(run, met_[0]);
  // The others wait for this worker's ranks, in NCCL.
  if (!joined.ok()) {
    EndIfDeviceIsLost();
    run.collective().Abort(joined);
  }
  RETURN_IF_ERROR(joined);
  return run.AwaitAll();
}

absl::Status DeviceSums::JoinMeeting(GroupRun& run,
                                     const std::string& meeting) {
  const CollectiveGroup& members = run.group().collective;
  const int own_devices = static_cast<int>(options_.devices.size());
  const int ranks = own_devices * static_cast<int>(members.ranks.size());
  peers_.resize(own_devices);
  return OnAllDevices(
      [&] { return run.CheckMayGoOn(); },
      [&](size_t i, const MayGoOn& may_go_on) -> absl::Status {
        Device& device = options_.devices[i]->device();
        const int rank = members.own_rank * own_devices + static_cast<int>(i);
        ASSIGN_OR_RETURN(peers_[i], DevicePeer::Join(device, meeting, ranks,
                                                     rank, may_go_on));
        LOG(INFO) << "NCCL adds gradients on " << device.name() << ", rank "
                  << rank << " of " << ranks;
        return absl::OkStatus();
      });
}

std::optional<std::vector<std::vector<int>>> DeviceSums::PartsOnDevices(
    int64_t step, const std::vector<int>& replicas) const {
  const std::vector<DeviceGradients*>& devices = options_.devices;
  std::vector<std::vector<int>> parts(devices.size());
  for (const int replica : replicas) {
    const auto device = std::find_if(
        devices.begin(), devices.end(), [&](const DeviceGradients* gradients) {
          return gradients->IsTaken(step, {replica});
        });
    if (device == devices.end()) return std::nullopt;
    parts[device - devices.begin()].push_back(replica);
  }
  return parts;
}

// A rank that ends its part of a step says so, before its own sums are under
// way, too: others may wait for it in NCCL, where no operation of the group is
// pending.
absl::Status DeviceSums::Add(GroupRun& run, int64_t step,
                             absl::FunctionRef<absl::Status()> let_rows_leave) {
  std::optional<std::vector<std::vector<int>>> parts;
  if (absl::Status waited = run.AwaitOwn([&] {
        parts = PartsOnDevices(step, run.group().replicas);
        return parts.has_value();
      });
      !waited.ok()) {
    run.collective().Abort(waited);
    return waited;
  }
  absl::Status added = AddOnDevices(run, step, *parts, let_rows_leave);
  if (!added.ok()) {
    if (!absl::IsCancelled(added)) {
      EndIfDeviceIsLost();
      added = Named(added, run.collective());
    }
    run.collective().Abort(added);
  }
  RETURN_IF_ERROR(added);
  RETURN_IF_ERROR(run.AwaitAll());
  if (options_.variables != nullptr) return absl::OkStatus();
  // The first device's copy of the sum is as good as any.
  options_.devices.front()->CopyTo(on_host_.packs(), on_host_.values());
  return absl::OkStatus();
}

// A replica's gradients count when it has pushed them: until then its pass may
// fail, and its rows are not there.
absl::Status DeviceSums::AddOnDevices(
    GroupRun& run, int64_t step, const std::vector<std::vector<int>>& parts,
    absl::FunctionRef<absl::Status()> let_rows_leave) {
  const auto may_go_on = [&] { return run.collective().status(); };
  if (!peers_.empty()) {
    RETURN_IF_ERROR(
        OnAllDevices(may_go_on, [&](size_t i, const MayGoOn& goes_on) {
          return BeginPacks(i, parts[i], goes_on);
        }));
  }
  RETURN_IF_ERROR(run.AwaitOwn([&] {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!options_.devices[i]->Has(step, parts[i])) return false;
    }
    return true;
  }));
  RETURN_IF_ERROR(let_rows_leave());
  if (peers_.empty()) return options_.devices.front()->AddUp(parts.front());
  return OnAllDevices(may_go_on, [&](size_t i, const MayGoOn& goes_on) {
    return peers_[i]->Await(goes_on);
  });
}

absl::Status DeviceSums::BeginPacks(size_t device,
                                    const std::vector<int>& replicas,
                                    const MayGoOn& may_go_on) {
  DeviceGradients& gradients = *options_.devices[device];
  for (size_t pack = 0; pack < gradients.num_packs(); ++pack) {
    const std::unique_ptr<DeviceGradients::Part> part =
        gradients.PartOf(pack, replicas);
    RETURN_IF_ERROR(peers_[device]->Begin(part->pack, may_go_on));
  }
  return absl::OkStatus();
}

absl::Status DeviceSums::CheckFinite(int64_t step) {
  if (options_.variables == nullptr) return on_host_.CheckFinite(step);
  DeviceGradients& gradients = *options_.devices.front();
  {
    absl::MutexLock lock(&gradients.device_mutex());
    ASSIGN_OR_RETURN(const bool has_non_finite, gradients.sum().HasNonFinite());
    if (!has_non_finite) return absl::OkStatus();
    // To name one.
    RETURN_IF_ERROR(gradients.sum().Fetch());
  }
  gradients.CopyTo(on_host_.packs(), on_host_.values());
  return on_host_.CheckFinite(step);
}

absl::Status DeviceSums::Apply(ParameterStore& parameters) {
  if (options_.variables != nullptr) return ApplyOnDevice();
  on_host_.Apply(parameters);
  return absl::OkStatus();
}

// A pass between the two would write where the mean is.
absl::Status DeviceSums::ApplyOnDevice() {
  DeviceGradients& gradients = *options_.devices.front();
  absl::MutexLock lock(&gradients.device_mutex());
  RETURN_IF_ERROR(gradients.MakeMean(options_.replicas));
  RETURN_IF_ERROR(options_.variables->Update());
  for (size_t i = 0; i < state_.variables().size(); ++i) {
    if (!state_.variables()[i].frozen) continue;
    options_.variables->SetUpdates(i, options_.variables->updates()[i] + 1);
  }
  return absl::OkStatus();
}

absl::Status DeviceSums::Named(const absl::Status& why,
                               const Collective& collective) {
  for (int i = 0; i < kNamingLooks && collective.status().ok(); ++i) {
    clock_.Pause(kNamingPause);
  }
  const absl::Status of_group = collective.status();
  return of_group.ok() ? why : of_group;
}

void DeviceSums::EndIfDeviceIsLost() {
  for (DeviceGradients* const gradients : options_.devices) {
    absl::Status device;
    {
      absl::MutexLock lock(&gradients->device_mutex());
      device = gradients->device().Synchronize();
    }
    if (!device.ok()) state_.steps().End(device);
  }
}

}  // namespace parasol
