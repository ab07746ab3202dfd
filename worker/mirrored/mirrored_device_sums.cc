// The part of the parameters that adds on devices.
#include <string>
#include <utility>

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

// The meeting's name travels on the group's connections: it is that of this
// epoch, and no rank of another one hears of it.
absl::Status MirroredParameters::MeetDevices(const Group& group,
                                             Collective& collective) {
  const int ranks = static_cast<int>(group.collective.ranks.size());
  if (options_.on_device == nullptr || ranks == 1) return absl::OkStatus();
  const auto may_go_on = [&] { return CheckMayGoOn(group, collective); };
  std::string own;
  if (group.collective.own_rank == 0) {
    const absl::StatusOr<std::string> meeting = DevicePeer::NewMeeting();
    if (!meeting.ok()) collective.Abort(meeting.status());
    ASSIGN_OR_RETURN(own, meeting);
  }
  collective.AllGather(own, &met_, CountPending(group));
  RETURN_IF_ERROR(collective.Await());
  absl::StatusOr<std::unique_ptr<DevicePeer>> peer =
      DevicePeer::Join(options_.on_device->device(), met_[0], ranks,
                       group.collective.own_rank, may_go_on);
  // The others wait for this rank, in NCCL.
  if (!peer.ok()) {
    EndIfDeviceIsLost();
    collective.Abort(peer.status());
  }
  RETURN_IF_ERROR(peer.status());
  peer_ = *std::move(peer);
  LOG(INFO) << "NCCL adds gradients on " << options_.on_device->device().name()
            << ", rank " << group.collective.own_rank << " of " << ranks;
  return AwaitAll(group, collective);
}

absl::Status MirroredParameters::AwaitAll(const Group& group,
                                          Collective& collective) {
  collective.AllGather("", &met_, CountPending(group));
  return collective.Await();
}

absl::Status MirroredParameters::SumOnDevice(const Group& group, int64_t step,
                                             Collective& collective) {
  RETURN_IF_ERROR(AwaitGradients(group, collective, [&] {
    return options_.on_device->Has(step, group.replicas);
  }));
  RETURN_IF_ERROR(AwaitAll(group, collective));
  absl::Status added = AddOnDevice(group, collective);
  if (!added.ok()) {
    EndIfDeviceIsLost();
    added = Named(added, collective);
    collective.Abort(added);
  }
  RETURN_IF_ERROR(added);
  return AwaitAll(group, collective);
}

absl::Status MirroredParameters::AddOnDevice(const Group& group,
                                             Collective& collective) {
  DeviceGradients& gradients = *options_.on_device;
  RETURN_IF_ERROR(gradients.AddUp(group.replicas));
  if (peer_ == nullptr) {
    RETURN_IF_ERROR(gradients.FetchSum());
  } else {
    RETURN_IF_ERROR(peer_->AllReduce(
        gradients.sum().data(), static_cast<int64_t>(gradients.sum().size()),
        gradients.on_host().data(), [&] { return collective.status(); }));
  }
  gradients.CopyTo(packs_, sums_);
  return absl::OkStatus();
}

absl::Status MirroredParameters::Named(const absl::Status& why,
                                       const Collective& collective) {
  for (int i = 0; i < kNamingLooks && collective.status().ok(); ++i) {
    absl::Mutex mu;
    absl::MutexLock lock(&mu);
    bool never = false;
    clock_.AwaitWithTimeout(mu, absl::Condition(&never), kNamingPause);
  }
  const absl::Status of_group = collective.status();
  return of_group.ok() ? why : of_group;
}

void MirroredParameters::EndIfDeviceIsLost() {
  absl::Status device;
  {
    absl::MutexLock lock(&options_.on_device->device_mutex());
    device = options_.on_device->device().Synchronize();
  }
  if (!device.ok()) state_.End(device);
}

}  // namespace parasol
