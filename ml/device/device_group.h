#ifndef PARASOL_ML_DEVICE_DEVICE_GROUP_H_
#define PARASOL_ML_DEVICE_DEVICE_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ml/device/device.h"

namespace parasol {

// Devices of one process that exchange arrays without the host's memory, as far
// as the machine lets them. Devices are numbered as they were given. All work
// goes to their compute streams, and no call waits for it. Not thread-safe:
// during a call nobody else uses one of the devices. Errors of all functions:
// Unavailable, a device was lost.
class DeviceGroup {
 public:
  // An array of float32 in the memory of a device.
  struct Place {
    size_t device = 0;
    float* data = nullptr;
  };

  struct Options {
    // True if AllReduce() will be called.
    bool nccl = false;
  };

  // Borrows `devices`: at least one, and all of them CUDA devices, or none.
  // CUDA devices get access to each other's memory; one line in the log names
  // those that have none, whose copies go through the host's memory.
  //   FailedPrecondition  NCCL is wanted, and is not on this machine.
  //   Unavailable         NCCL does not start: the message has its reason.
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Create(
      std::vector<Device*> devices, const Options& options);
  static absl::StatusOr<std::unique_ptr<DeviceGroup>> Create(
      std::vector<Device*> devices) {
    return Create(std::move(devices), Options());
  }
  // Returns OK if NCCL can be opened here. Opens no device.
  //   FailedPrecondition  it is not on this machine, or too old, or this binary
  //                       was built without CUDA: says which.
  static absl::Status CheckNccl();

  virtual ~DeviceGroup() = default;

  size_t size() const { return devices_.size(); }
  Device& device(size_t index) { return *devices_[index]; }

  // Enqueues a copy of `elements` numbers on the compute stream of device `by`,
  // which has one of both ends.
  virtual absl::Status Copy(size_t by, Place from, Place to,
                            int64_t elements) = 0;

  // Makes all work that any device is given from now on wait for the work that
  // all devices have now.
  virtual absl::Status Join() = 0;

  // Enqueues the replacement of the arrays, one for each device, by their sum,
  // in NCCL's own order, behind what each device has to do. Requires
  // Options::nccl.
  virtual absl::Status AllReduce(absl::Span<float* const> arrays,
                                 int64_t elements) = 0;

  // Blocks until all devices have done their work.
  absl::Status Synchronize();

 protected:
  explicit DeviceGroup(std::vector<Device*> devices)
      : devices_(std::move(devices)) {}

 private:
  const std::vector<Device*> devices_;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_DEVICE_GROUP_H_
