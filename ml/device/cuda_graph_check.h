#ifndef PARASOL_ML_DEVICE_CUDA_GRAPH_CHECK_H_
#define PARASOL_ML_DEVICE_CUDA_GRAPH_CHECK_H_

#include "absl/status/status.h"
#include "ml/device/cuda_device.h"
#include "ml/device/recorder.h"

namespace parasol {

// Checks what CUDA's documentation does not promise and recordings depend on: a
// host or a stream that waits for an event of a recording waits for the newest
// replay. Some slow replays show it, in a tenth of a second.
//   FailedPrecondition  a wait ended before the replay.
//   any other           as for `recorder`.
absl::Status CheckWaitsForReplays(CudaDevice& device, Recorder& recorder);

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_GRAPH_CHECK_H_
