#include "ml/device/device_peer.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_peer.h"
#endif

namespace parasol {
namespace {

#if !PARASOL_HAVE_CUDA
absl::Status HasNoNccl() {
  return absl::FailedPreconditionError("this binary was built without CUDA");
}
#endif

}  // namespace

absl::Status DevicePeer::Check(const Device& device) {
  if (device.kind() != Device::Kind::kCuda) {
    return absl::FailedPreconditionError(absl::StrCat(
        "NCCL sums between CUDA devices, and ", device.name(), " is none"));
  }
#if PARASOL_HAVE_CUDA
  return CudaPeer::CheckLibrary();
#else
  return HasNoNccl();
#endif
}

absl::StatusOr<std::string> DevicePeer::NewMeeting() {
#if PARASOL_HAVE_CUDA
  return CudaPeer::NewMeeting();
#else
  return HasNoNccl();
#endif
}

absl::StatusOr<std::unique_ptr<DevicePeer>> DevicePeer::Join(
    const Device& device, const std::string& meeting, int ranks, int rank,
    MayGoOn may_go_on) {
  RETURN_IF_ERROR(Check(device));
#if PARASOL_HAVE_CUDA
  return CudaPeer::Join(static_cast<const CudaDevice&>(device), meeting, ranks,
                        rank, may_go_on);
#else
  return HasNoNccl();
#endif
}

}  // namespace parasol
