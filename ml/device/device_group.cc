#include "ml/device/device_group.h"

#include <algorithm>

#include "base/log.h"

#if PARASOL_HAVE_CUDA
#include "ml/device/cuda_group.h"
#include "ml/device/cuda_nccl.h"
#endif

namespace parasol {
namespace {

bool IsCuda(const Device* device) {
  return device->kind() == Device::Kind::kCuda;
}

absl::Status HasNoNccl() {
  return absl::FailedPreconditionError("this binary was built without CUDA");
}

// Devices that the processor plays: work is done when it has been enqueued.
class GroupOnHost final : public DeviceGroup {
 public:
  explicit GroupOnHost(std::vector<Device*> devices)
      : DeviceGroup(std::move(devices)) {}

  absl::Status Copy(size_t by, Place from, Place to,
                    int64_t elements) override {
    return device(by).Copy(Device::Stream::kCompute,
                           absl::MakeConstSpan(from.data, elements), to.data);
  }
  absl::Status Join() override { return absl::OkStatus(); }
  absl::Status AllReduce(absl::Span<float* const>, int64_t) override {
    return absl::FailedPreconditionError("NCCL sums between CUDA devices");
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceGroup>> DeviceGroup::Create(
    std::vector<Device*> devices, const Options& options) {
  CHECK(!devices.empty());
  const bool is_cuda = IsCuda(devices.front());
  CHECK(std::all_of(devices.begin(), devices.end(), [&](const Device* device) {
    return IsCuda(device) == is_cuda;
  })) << "devices of two kinds in one group";
#if PARASOL_HAVE_CUDA
  if (is_cuda) return CudaGroup::Create(std::move(devices), options);
#endif
  if (options.nccl) return HasNoNccl();
  return std::make_unique<GroupOnHost>(std::move(devices));
}

absl::Status DeviceGroup::CheckNccl() {
#if PARASOL_HAVE_CUDA
  return CudaNccl::Check();
#else
  return HasNoNccl();
#endif
}

absl::Status DeviceGroup::Synchronize() {
  absl::Status first;
  for (Device* device : devices_) first.Update(device->Synchronize());
  return first;
}

}  // namespace parasol
