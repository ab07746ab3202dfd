#include "ml/device/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ml/device/cpu_device.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_device.h"
#endif

namespace parasol {
namespace {

constexpr int kMaxThreads = 1024;

absl::StatusOr<std::unique_ptr<Device>> OpenCuda(
    int index, const Device::Options& options) {
#if PARASOL_HAVE_CUDA
  return CudaDevice::Open(index, options);
#else
  return absl::FailedPreconditionError(absl::StrCat(
      "device cuda:", index, ": this binary was built without CUDA"));
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> Device::Open(absl::string_view name,
                                                     const Options& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.threads, " compute threads, not between 1 and ", kMaxThreads));
  }
  absl::string_view index_text = name;
  if (absl::ConsumePrefix(&index_text, "cuda:")) {
    int index = 0;
    if (!absl::SimpleAtoi(index_text, &index) || index < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("device ", name, ": no number after \"cuda:\""));
    }
    return OpenCuda(index, options);
  }
  if (name == "auto") {
    absl::StatusOr<std::unique_ptr<Device>> cuda = OpenCuda(0, options);
    if (cuda.ok()) return cuda;
  } else if (name != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        "device \"", name, "\" is none of \"auto\", \"cpu\", \"cuda:0\""));
  }
  return std::make_unique<CpuDevice>(options.threads);
}

}  // namespace parasol
