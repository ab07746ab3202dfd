#ifndef PARASOL_WORKER_WORKER_DEVICE_H_
#define PARASOL_WORKER_WORKER_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/device/device.h"
#include "proto/job.pb.h"

namespace parasol {

// Opens the device on which a worker computes. `name` and `threads` come from
// the command line and are those of Device::Open(); the precision and the use
// of CUDA graphs, which is the default, come from `settings`. Errors as for
// Device::Open().
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    absl::string_view name, int threads, const job::WorkerSettings& settings);

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_DEVICE_H_
