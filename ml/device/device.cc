#include "ml/device/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/device/cpu_device.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_device.h"
#endif

namespace parasol {
namespace {

constexpr int kMaxThreads = 1024;

absl::StatusOr<int> CudaIndex(absl::string_view digits) {
  int index = 0;
  if (absl::SimpleAtoi(digits, &index) && index >= 0) return index;
  return absl::InvalidArgumentError(
      "\"cuda:\" needs the number of the device, as in cuda:0");
}

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
  } else {
    LOG(INFO) << "device auto: " << cpu->name() << ": "
              << cuda.status().message();
  }
  return cpu;
}

}  // namespace

absl::Status Device::CheckName(absl::string_view name) {
  if (name == "auto" || name == "cpu") return absl::OkStatus();
  if (!absl::ConsumePrefix(&name, "cuda:")) {
    return absl::InvalidArgumentError(
        "there is no such device; use auto, cpu or cuda:N, N from 0");
  }
  ASSIGN_OR_RETURN(const int index, CudaIndex(name));
  return CheckCuda(index);
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
  RETURN_IF_ERROR(CheckName(name)) << "device \"" << name << "\"";
  absl::string_view index_text = name;
  if (absl::ConsumePrefix(&index_text, "cuda:")) {
    ASSIGN_OR_RETURN(const int index, CudaIndex(index_text));
    return OpenCuda(index, options);
  }
  return std::make_unique<CpuDevice>(options.threads);
}

}  // namespace parasol
