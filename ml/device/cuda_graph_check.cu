#include <cuda_runtime.h>

#include <memory>

#include "base/status_macros.h"
#include "ml/device/cuda_graph_check.h"
#include "ml/device/cuda_launch.h"

namespace parasol {
namespace {

// Some ten milliseconds: a wait that does not wait ends long before.
constexpr int64_t kSlowCycles = 20'000'000;
constexpr int kReplays = 3;

__global__ void CountSlowly(float* count) {
  const int64_t start = clock64();
  while (clock64() - start < kSlowCycles) {
  }
  *count += 1;
}

// A counter on the device, and its copy on the host.
struct Counter {
  Array<float> value;
  std::unique_ptr<Device::Event> counted;
  Array<float> copy;
  std::unique_ptr<Device::Event> copied;
  Array<float> copy_beside;
};

absl::StatusOr<Counter> NewCounter(Device& device) {
  Counter counter;
  ASSIGN_OR_RETURN(counter.value, device.NewArray<float>(1));
  ASSIGN_OR_RETURN(counter.counted, device.NewEvent());
  ASSIGN_OR_RETURN(counter.copy, device.NewHostArray<float>(1));
  ASSIGN_OR_RETURN(counter.copied, device.NewEvent());
  ASSIGN_OR_RETURN(counter.copy_beside, device.NewHostArray<float>(1));
  return counter;
}

// Counts, and fetches the count as a model fetches a gradient.
absl::Status Count(CudaDevice& device, Counter& counter) {
  ASSIGN_OR_RETURN(CUstream_st* const stream, device.ComputeStream());
  cuda::Launch(CountSlowly, 1, 1, stream, counter.value.data());
  RETURN_IF_ERROR(LaunchStatus("a slow count"));
  RETURN_IF_ERROR(device.Record(Device::Stream::kCompute, *counter.counted));
  RETURN_IF_ERROR(
      device.Order(Device::Stream::kCompute, Device::Stream::kCopyOut));
  RETURN_IF_ERROR(device.Copy(Device::Stream::kCopyOut,
                              absl::Span<const float>(counter.value.span()),
                              counter.copy.data()));
  return device.Record(Device::Stream::kCopyOut, *counter.copied);
}

// Fetches the count on a stream that waits for the event, as a pack of
// gradients does. Returns when it is there.
absl::Status FetchBeside(CudaDevice& device, Counter& counter) {
  RETURN_IF_ERROR(device.Follow(*counter.counted, Device::Stream::kCopyIn));
  RETURN_IF_ERROR(device.Copy(Device::Stream::kCopyIn,
                              absl::Span<const float>(counter.value.span()),
                              counter.copy_beside.data()));
  return device.Synchronize();
}

}  // namespace

// The first count is not recorded, so that the event has a mark already: the
// wait for a replay must not be taken for the wait for that.
absl::Status CheckWaitsForReplays(CudaDevice& device, Recorder& recorder) {
  ASSIGN_OR_RETURN(Counter counter, NewCounter(device));
  RETURN_IF_ERROR(Count(device, counter));
  RETURN_IF_ERROR(device.Wait(*counter.copied));
  ASSIGN_OR_RETURN(const std::unique_ptr<Recorder::Recording> recording,
                   recorder.Record([&] { return Count(device, counter); }));
  for (int replay = 1; replay <= kReplays; ++replay) {
    RETURN_IF_ERROR(recorder.Replay(*recording));
    RETURN_IF_ERROR(device.Wait(*counter.copied));
    if (*counter.copy.data() != replay + 1) {
      return absl::FailedPreconditionError(
          "this driver does not let the host wait for events of CUDA graphs");
    }
  }
  for (int replay = kReplays + 1; replay <= 2 * kReplays; ++replay) {
    RETURN_IF_ERROR(recorder.Replay(*recording));
    RETURN_IF_ERROR(FetchBeside(device, counter));
    if (*counter.copy_beside.data() != replay + 1) {
      return absl::FailedPreconditionError(
          "this driver does not let streams wait for events of CUDA graphs");
    }
  }
  return absl::OkStatus();
}

}  // namespace parasol
