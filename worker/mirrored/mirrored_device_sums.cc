// The part of the parameters that adds on devices.
#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "worker/mirrored/mirrored_parameters.h"

namespace parasol {
namespace {

// Number of times that a rank whose NCCL fails asks the group who is lost, and
// the time between two of them. A group looks at its connections each 50 ms.
constexpr int kNamingLooks = 30;
constexpr absl::Duration kNamingPause = absl::Milliseconds(10);

}  // namespace

absl::Status MirroredParameters::OnAllDevices(
    const std::function<absl::Status()>& may_go_on,
    const std::function<absl::Status(
        size_t device, const std::function<absl::Status()>& may_go_on)>& call) {
  std::atomic<bool> has_failed = false;
  const auto all_go_on = [&]() -> absl::Status {
    if (has_failed) return absl::CancelledError("another device has failed");
    return may_go_on();
  };
  return calls_->Run([&](size_t device) {
    absl::Status result = call(device, all_go_on);
    if (!result.ok()) has_failed = true;
    return result;
  });
}

// The meeting's name travels on the group's connections: it is that of this
// epoch, and no rank of another one hears of it.
absl::Status MirroredParameters::MeetDevices(const Group& group,
                                             Collective& collective) {
  const size_t devices =
      options_.on_devices.size() * group.collective.ranks.size();
  if (devices <= 1) return absl::OkStatus();
  std::string own;
  if (group.collective.own_rank == 0) {
    const absl::StatusOr<std::string> meeting = DevicePeer::NewMeeting();
    if (!meeting.ok()) collective.Abort(meeting.status());
    ASSIGN_OR_RETURN(own, meeting);
  }
  collective.AllGather(own, &met_, CountPending(group));
  RETURN_IF_ERROR(collective.Await());
  const absl::Status joined = JoinMeeting(group, collective, met_[0]);
  // The others wait for this worker's ranks, in NCCL.
  if (!joined.ok()) {
    EndIfDeviceIsLost();
    collective.Abort(joined);
  }
  RETURN_IF_ERROR(joined);
  return AwaitAll(group, collective);
}

absl::Status MirroredParameters::JoinMeeting(const Group& group,
                                             Collective& collective,
                                             const std::string& meeting) {
  const int own_devices = static_cast<int>(options_.on_devices.size());
  const int ranks =
      own_devices * static_cast<int>(group.collective.ranks.size());
  peers_.resize(own_devices);
  RETURN_IF_ERROR(OnAllDevices(
      [&] { return CheckMayGoOn(group, collective); },
      [&](size_t i, const auto& may_go_on) -> absl::Status {
        Device& device = options_.on_devices[i]->device();
        const int rank = group.collective.own_rank * own_devices + i;
        ASSIGN_OR_RETURN(peers_[i], DevicePeer::Join(device, meeting, ranks,
                                                     rank, may_go_on));
        LOG(INFO) << "NCCL adds gradients on " << device.name() << ", rank "
                  << rank << " of " << ranks;
        return absl::OkStatus();
      }));
  return absl::OkStatus();
}

absl::Status MirroredParameters::AwaitAll(const Group& group,
                                          Collective& collective) {
  collective.AllGather("", &met_, CountPending(group));
  return collective.Await();
}

std::optional<std::vector<std::vector<int>>> MirroredParameters::PartsOnDevices(
    int64_t step, const std::vector<int>& replicas) const {
  const std::vector<DeviceGradients*>& devices = options_.on_devices;
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
absl::Status MirroredParameters::SumOnDevices(const Group& group, int64_t step,
                                              Collective& collective) {
  std::optional<std::vector<std::vector<int>>> parts;
  if (absl::Status waited = AwaitGradients(group, collective,
                                           [&] {
                                             parts = PartsOnDevices(
                                                 step, group.replicas);
                                             return parts.has_value();
                                           });
      !waited.ok()) {
    collective.Abort(waited);
    return waited;
  }
  absl::Status added = AddOnDevices(group, step, *parts, collective);
  if (!added.ok()) {
    if (!absl::IsCancelled(added)) {
      EndIfDeviceIsLost();
      added = Named(added, collective);
    }
    collective.Abort(added);
  }
  RETURN_IF_ERROR(added);
  RETURN_IF_ERROR(AwaitAll(group, collective));
  if (options_.variables_on_device != nullptr) return absl::OkStatus();
  // The first device's copy of the sum is as good as any.
  options_.on_devices.front()->CopyTo(packs_, sums_);
  return absl::OkStatus();
}

// A replica's gradients count when it has pushed them: until then its pass may
// fail, and its rows are not there.
absl::Status MirroredParameters::AddOnDevices(
    const Group& group, int64_t step,
    const std::vector<std::vector<int>>& parts, Collective& collective) {
  const auto may_go_on = [&] { return collective.status(); };
  if (!peers_.empty()) {
    RETURN_IF_ERROR(OnAllDevices(may_go_on, [&](size_t i, const auto& goes_on) {
      return BeginPacks(i, parts[i], goes_on);
    }));
  }
  RETURN_IF_ERROR(AwaitGradients(group, collective, [&] {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!options_.on_devices[i]->Has(step, parts[i])) return false;
    }
    return true;
  }));
  RETURN_IF_ERROR(LetRowsLeave(group, step, collective));
  if (peers_.empty()) return options_.on_devices.front()->AddUp(parts.front());
  return OnAllDevices(may_go_on, [&](size_t i, const auto& goes_on) {
    return peers_[i]->Await(goes_on);
  });
}

absl::Status MirroredParameters::BeginPacks(
    size_t device, const std::vector<int>& replicas,
    const std::function<absl::Status()>& may_go_on) {
  DeviceGradients& gradients = *options_.on_devices[device];
  for (size_t pack = 0; pack < gradients.num_packs(); ++pack) {
    const std::unique_ptr<DeviceGradients::Part> part =
        gradients.PartOf(pack, replicas);
    RETURN_IF_ERROR(peers_[device]->Begin(part->pack, may_go_on));
  }
  return absl::OkStatus();
}

// A pass between the two would write where the mean is.
absl::Status MirroredParameters::ApplyOnDevice() {
  DeviceGradients& gradients = *options_.on_devices.front();
  absl::MutexLock lock(&gradients.device_mutex());
  RETURN_IF_ERROR(gradients.MakeMean(options_.replicas));
  RETURN_IF_ERROR(options_.variables_on_device->Update());
  for (size_t i = 0; i < state_.variables().size(); ++i) {
    if (!state_.variables()[i].frozen) continue;
    options_.variables_on_device->SetUpdates(
        i, options_.variables_on_device->updates()[i] + 1);
  }
  return absl::OkStatus();
}

absl::Status MirroredParameters::Named(const absl::Status& why,
                                       const Collective& collective) {
  for (int i = 0; i < kNamingLooks && collective.status().ok(); ++i) {
    clock_.Pause(kNamingPause);
  }
  const absl::Status of_group = collective.status();
  return of_group.ok() ? why : of_group;
}

void MirroredParameters::EndIfDeviceIsLost() {
  for (DeviceGradients* const gradients : options_.on_devices) {
    absl::Status device;
    {
      absl::MutexLock lock(&gradients->device_mutex());
      device = gradients->device().Synchronize();
    }
    if (!device.ok()) state_.End(device);
  }
}

}  // namespace parasol
