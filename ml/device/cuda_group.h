#ifndef PARASOL_ML_DEVICE_CUDA_GROUP_H_
#define PARASOL_ML_DEVICE_CUDA_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_nccl.h"
#include "ml/device/device_group.h"

namespace parasol {

// A group of CUDA devices. An event of each device orders its work behind the
// others'.
class CudaGroup : public DeviceGroup {
 public:
  // Does what DeviceGroup::Create() says.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Create(
      std::vector<Device*> devices, const Options& options);
  ~CudaGroup() override;

  absl::Status Copy(size_t by, Place from, Place to, int64_t elements) override;
  absl::Status Join() override;
  absl::Status AllReduce(absl::Span<float* const> arrays,
                         int64_t elements) override;

 private:
  explicit CudaGroup(std::vector<Device*> devices)
      : DeviceGroup(std::move(devices)) {}

  absl::Status Start(const Options& options);
  // Returns the pairs of devices without access, for the log: "cuda:0 to
  // cuda:1".
  absl::StatusOr<std::vector<std::string>> EnablePeers();
  CudaDevice& cuda(size_t index) {
    return static_cast<CudaDevice&>(device(index));
  }

  std::vector<CUevent_st*> reached_;  // one for each device
  std::unique_ptr<CudaNccl> nccl_;    // null: not wanted
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_GROUP_H_
