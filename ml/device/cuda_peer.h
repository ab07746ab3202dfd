#ifndef PARASOL_ML_DEVICE_CUDA_PEER_H_
#define PARASOL_ML_DEVICE_CUDA_PEER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/cuda_device.h"
#include "ml/device/device_peer.h"

namespace parasol {

// The functions of DevicePeer for a CUDA device. NCCL, from 2.14 on, is opened
// when it is first needed.
class CudaPeer : public DevicePeer {
 public:
  static absl::Status CheckLibrary();
  static absl::StatusOr<std::string> NewMeeting();
  static absl::StatusOr<std::unique_ptr<DevicePeer>> Join(
      const CudaDevice& device, const std::string& meeting, int ranks, int rank,
      MayGoOn may_go_on);
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_PEER_H_
