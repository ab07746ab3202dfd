#ifndef PARASOL_ML_DEVICE_DEVICE_PEER_H_
#define PARASOL_ML_DEVICE_DEVICE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// A CUDA device's place among devices of this and other processes, a rank,
// whose arrays NCCL adds. Its work has a stream of its own, so other threads
// may use the device meanwhile. Used by one thread at a time, and each rank of
// a process by a thread of its own: a rank's calls wait for the others'.
class DevicePeer {
 public:
  // Longest time that the ranks take to connect.
  static constexpr absl::Duration kJoinLimit = absl::Minutes(1);

  // Says whether a wait for others goes on: an error ends the wait, and the
  // function that waits returns it. NCCL itself may wait for a lost rank for
  // ever.
  using MayGoOn = absl::FunctionRef<absl::Status()>;

  // Returns OK if NCCL can add arrays of `device` and other processes'.
  //   FailedPrecondition  `device` is no CUDA device, or NCCL is not on this
  //                       machine or too old: says which.
  static absl::Status Check(const Device& device);

  // Returns the name of new ranks' meeting, which one of them makes and all
  // bring. Fails as Check() does, or with
  //   Unavailable  NCCL can't make one: the message has its reason.
  static absl::StatusOr<std::string> NewMeeting();

  // Connects rank `rank` of `ranks`. Blocks until all have come, for kJoinLimit
  // at most. `device` must outlive the result. Fails as `may_go_on` does, or
  // with
  //   InvalidArgument   `meeting` is none of NewMeeting(), or NCCL refuses this
  //                     rank: the message has its reason.
  //   DeadlineExceeded  ranks are missing.
  static absl::StatusOr<std::unique_ptr<DevicePeer>> Join(
      const Device& device, const std::string& meeting, int ranks, int rank,
      MayGoOn may_go_on);

  // Ends this rank's part in what is not complete.
  virtual ~DevicePeer() = default;

  // Arrays that are added as one. All ranks have as many elements.
  struct Pack {
    // Arrays in the memory of the device, of which this rank brings the sum, in
    // their order; none: zeros.
    absl::Span<const float* const> terms = {};
    // Events of the device that mark the end of what writes `terms`.
    absl::Span<Device::Event* const> written = {};
    int64_t elements = 0;
    // Place of the sum of all ranks, in the memory of the device, that overlaps
    // no term, and of its copy, an array of NewHostArray(); null: no copy.
    float* sum = nullptr;
    float* on_host = nullptr;
  };

  // Enqueues the sum of all ranks' packs, in NCCL's own order, the same bits at
  // all ranks, and its copy, behind what writes this rank's terms and the packs
  // that were begun before: the ranks begin the same packs in the same order.
  // Does not wait for them, but that NCCL may want the other ranks to begin the
  // first one. After an error the rank is of no use, and the arrays are
  // undefined. Fails as `may_go_on` does, or with
  //   Unavailable  NCCL or the device fails: the message has its reason.
  virtual absl::Status Begin(const Pack& pack, MayGoOn may_go_on) = 0;
  // Blocks until all sums and copies that were begun are there. Fails as
  // Begin() does.
  virtual absl::Status Await(MayGoOn may_go_on) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DEVICE_PEER_H_
