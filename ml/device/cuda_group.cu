#include <cuda_runtime.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/device/cuda_group.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

// Returns true if the present device can read and write memory of device
// `other` from now on. A machine may have more devices than a device can have
// peers.
absl::StatusOr<bool> Enable(int device, int other) {
  int can_access = 0;
  RETURN_IF_ERROR(
      CudaStatus(cudaDeviceCanAccessPeer(&can_access, device, other),
                 "cudaDeviceCanAccessPeer"));
  if (can_access == 0) return false;
  const cudaError_t enabled = cudaDeviceEnablePeerAccess(other, 0);
  if (enabled == cudaSuccess) return true;
  // Clears the error, which the next launch would otherwise report as its own.
  cudaGetLastError();
  return enabled == cudaErrorPeerAccessAlreadyEnabled;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> CudaGroup::Create(
    std::vector<Device*> devices, const Options& options) {
  std::unique_ptr<CudaGroup> group(new CudaGroup(std::move(devices)));
  RETURN_IF_ERROR(group->Start(options));
  return group;
}

absl::Status CudaGroup::Start(const Options& options) {
  for (size_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(cuda(i).ComputeStream().status());
    cudaEvent_t event = nullptr;
    RETURN_IF_ERROR(
        CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                   "cudaEventCreate"))
        << device(i).name();
    reached_.push_back(event);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> apart, EnablePeers());
  if (!apart.empty()) {
    LOG(INFO) << "devices without access to each other's memory, whose copies "
              << "go through the host's: " << absl::StrJoin(apart, ", ");
  }
  if (!options.nccl) return absl::OkStatus();
  std::vector<CudaDevice*> devices;
  for (size_t i = 0; i < size(); ++i) devices.push_back(&cuda(i));
  ASSIGN_OR_RETURN(nccl_, CudaNccl::Open(std::move(devices)));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CudaGroup::EnablePeers() {
  std::vector<std::string> apart;
  for (size_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(cuda(i).ComputeStream().status());
    for (size_t j = 0; j < size(); ++j) {
      if (i == j) continue;
      ASSIGN_OR_RETURN(const bool has_access,
                       Enable(cuda(i).index(), cuda(j).index()),
                       _ << device(i).name());
      if (has_access) continue;
      apart.push_back(
          absl::StrCat("cuda:", cuda(i).index(), " to cuda:", cuda(j).index()));
    }
  }
  return apart;
}

CudaGroup::~CudaGroup() {
  nccl_.reset();
  for (size_t i = 0; i < reached_.size(); ++i) {
    cuda(i).ComputeStream().status().IgnoreError();
    cudaEventDestroy(reached_[i]);
  }
}

absl::Status CudaGroup::Copy(size_t by, Place from, Place to,
                             int64_t elements) {
  ASSIGN_OR_RETURN(CUstream_st* const stream, cuda(by).ComputeStream());
  return CudaStatus(cudaMemcpyPeerAsync(to.data, cuda(to.device).index(),
                                        from.data, cuda(from.device).index(),
                                        elements * sizeof(float), stream),
                    absl::StrCat("copy from ", device(from.device).name(),
                                 " to ", device(to.device).name()));
}

absl::Status CudaGroup::Join() {
  if (size() == 1) return absl::OkStatus();
  std::vector<CUstream_st*> streams;
  for (size_t i = 0; i < size(); ++i) {
    ASSIGN_OR_RETURN(streams.emplace_back(), cuda(i).ComputeStream());
    RETURN_IF_ERROR(
        CudaStatus(cudaEventRecord(reached_[i], streams[i]), "cudaEventRecord"))
        << device(i).name();
  }
  for (size_t i = 0; i < size(); ++i) {
    RETURN_IF_ERROR(cuda(i).ComputeStream().status());
    for (size_t j = 0; j < size(); ++j) {
      if (i == j) continue;
      RETURN_IF_ERROR(
          CudaStatus(cudaStreamWaitEvent(streams[i], reached_[j], 0),
                     "cudaStreamWaitEvent"))
          << device(i).name();
    }
  }
  return absl::OkStatus();
}

absl::Status CudaGroup::AllReduce(absl::Span<float* const> arrays,
                                  int64_t elements) {
  CHECK(nccl_ != nullptr) << "a group that was made without NCCL";
  return nccl_->AllReduce(arrays, elements);
}

}  // namespace parasol
