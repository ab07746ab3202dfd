#ifndef PARASOL_ML_DEVICE_DEVICE_PEER_H_
#define PARASOL_ML_DEVICE_DEVICE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ml/device/device.h"

namespace parasol {

// A CUDA device's place among devices of this and other processes, a rank,
// whose arrays NCCL adds. Its work has a stream of its own, so other threads
// may use the device meanwhile. Used by one thread at a time, and each rank of
// a process by a thread of its own: calls of one wait for those of the others.
class DevicePeer {
 public:
  // Longest time that the ranks take to connect.
  static constexpr absl::Duration kJoinLimit = absl::Minutes(1);

  // Says whether a wait for others goes on: an error ends it, and becomes that
  // of the function that waits. NCCL itself may wait for a lost rank for ever.
  using MayGoOn = absl::FunctionRef<absl::Status()>;

  // Returns OK if NCCL can add arrays of `device` and other processes'.
  //   FailedPrecondition  `device` is no CUDA device, or NCCL is not on this
  //                       machine or too old: says which.
  static absl::Status Check(const Device& device);

  // Returns the name of new ranks' meeting, which one of them makes and all
  // bring. Errors are those of Check(), and
  //   Unavailable  NCCL can't make one: the message has its reason.
  static absl::StatusOr<std::string> NewMeeting();

  // Connects rank `rank` of `ranks`. Blocks until all have come, for kJoinLimit
  // at most. `device` must outlive the result. Errors are those of `may_go_on`,
  // and
  //   InvalidArgument   `meeting` is none of NewMeeting(), or NCCL refuses this
  //                     rank: the message has its reason.
  //   DeadlineExceeded  ranks are missing.
  static absl::StatusOr<std::unique_ptr<DevicePeer>> Join(
      const Device& device, const std::string& meeting, int ranks, int rank,
      MayGoOn may_go_on);

  // Ends this rank's part in what is not complete.
  virtual ~DevicePeer() = default;

  // Replaces `array`, in the memory of the device, by the sum of all ranks'
  // arrays, in NCCL's own order, the same bits at all ranks, and copies it to
  // `host`, an array of NewHostArray(), unless that is null. All that writes
  // `array` must be done. Blocks until sum and copy are there. After an error
  // the rank is of no use, and the arrays are undefined. Errors are those of
  // `may_go_on`, and
  //   Unavailable  NCCL or the device fails: the message has its reason.
  virtual absl::Status AllReduce(float* array, int64_t elements, float* host,
                                 MayGoOn may_go_on) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DEVICE_PEER_H_
