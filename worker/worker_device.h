#ifndef PARASOL_WORKER_WORKER_DEVICE_H_
#define PARASOL_WORKER_WORKER_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ml/device/device.h"
#include "proto/job.pb.h"

namespace parasol {

// Where a worker computes: `name` and `threads` as for Device::Open(), which
// its command line says, with what the job asks for: precision, CUDA graphs.
// Errors as there.
absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    absl::string_view name, int threads, const job::WorkerSettings& settings);

}  // namespace parasol

#endif  // PARASOL_WORKER_WORKER_DEVICE_H_
