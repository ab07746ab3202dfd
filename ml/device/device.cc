#include "ml/device/device.h"

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/device/cpu_device.h"
#include "ml/device/device_name.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_device.h"
#endif

namespace parasol {
namespace {

constexpr int kMaxThreads = 1024;

absl::Status CheckCuda(int index) {
#if PARASOL_HAVE_CUDA
  return CudaDevice::CheckIndex(index);
#else
  return absl::InvalidArgumentError(
      "this binary was built without CUDA; use cpu");
#endif
}

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    int index, const Device::Options& options) {
  RETURN_IF_ERROR(CheckCuda(index)) << "device \"cuda:" << index << "\"";
#if PARASOL_HAVE_CUDA
  return CudaDevice::Open(index, options);
#else
  return absl::InternalError("not reached: CheckCuda() fails without CUDA");
#endif
}

bool HasCuda() {
#if PARASOL_HAVE_CUDA
  return CudaDevice::IsPresent();
#else
  return false;
#endif
}

std::unique_ptr<Device> OpenAny(const Device::Options& options) {
  absl::StatusOr<std::unique_ptr<Device>> cuda = OpenCuda(0, options);
  if (cuda.ok()) {
    LOG(INFO) << "device auto: " << (*cuda)->name();
    return *std::move(cuda);
  }
  auto cpu = std::make_unique<CpuDevice>(options.threads);
  if (HasCuda()) {
    LOG(WARNING) << "device auto: " << cpu->name()
                 << ", as the GPU cannot be used: " << cuda.status().message()
                 << "; mend that, or choose --device=cpu";
  }
  return cpu;
}

}  // namespace

absl::Status Device::CheckName(absl::string_view name) {
  if (name == "auto") return absl::OkStatus();
  ASSIGN_OR_RETURN(const DeviceName device, ParseDeviceName(name));
  return device.is_cuda ? CheckCuda(device.index) : absl::OkStatus();
}

std::vector<std::string> Device::CudaNames() {
  std::vector<std::string> names;
  for (int i = 0; CheckCuda(i).ok(); ++i) {
    names.push_back(DeviceName{.is_cuda = true, .index = i}.ToString());
  }
  return names;
}

absl::Status Device::CheckThreads(int threads) {
  if (threads >= 1 && threads <= kMaxThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      threads, " compute threads; use a number from 1 to ", kMaxThreads));
}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(absl::string_view name,
                                                     const Options& options) {
  RETURN_IF_ERROR(CheckThreads(options.threads));
  if (name == "auto") return OpenAny(options);
  ASSIGN_OR_RETURN(const DeviceName device, ParseDeviceName(name),
                   _ << "device \"" << name << "\"");
  if (device.is_cuda) {
    return OpenCuda(device.index, options);
  }
  return std::make_unique<CpuDevice>(options.threads);
}

}  // namespace parasol
