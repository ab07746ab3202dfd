#include <cuda_runtime.h>

#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_recorder.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

class CudaRecording : public Recorder::Recording {
 public:
  CudaRecording(cudaGraphExec_t graph, CUstream_st* stream)
      : graph_(graph), stream_(stream) {}
  // Its last replay may still be under way.
  ~CudaRecording() override {
    cudaStreamSynchronize(stream_);
    cudaGraphExecDestroy(graph_);
  }

  cudaGraphExec_t graph() const { return graph_; }

 private:
  const cudaGraphExec_t graph_;
  CUstream_st* const stream_;
};

absl::StatusOr<std::unique_ptr<Recorder::Recording>> Instantiate(
    cudaGraph_t graph, CUstream_st* stream) {
  cudaGraphExec_t executable = nullptr;
  RETURN_IF_ERROR(
      CudaStatus(cudaGraphInstantiateWithFlags(&executable, graph, 0),
                 "cudaGraphInstantiate"));
  return std::make_unique<CudaRecording>(executable, stream);
}

}  // namespace

// Captures the work of this thread only, because other threads may allocate
// meanwhile. A capture always ends, also one that has failed, because until
// then its streams can do nothing else.
absl::StatusOr<std::unique_ptr<Recorder::Recording>> CudaRecorder::Record(
    const std::function<absl::Status()>& enqueue) {
  ASSIGN_OR_RETURN(CUstream_st* const compute, device_.ComputeStream());
  RETURN_IF_ERROR(CudaStatus(
      cudaStreamBeginCapture(compute, cudaStreamCaptureModeThreadLocal),
      "cudaStreamBeginCapture"));
  is_recording_ = true;
  absl::Status captured = enqueue();
  captured.Update(JoinCopies());
  is_recording_ = false;
  cudaGraph_t graph = nullptr;
  captured.Update(CudaStatus(cudaStreamEndCapture(compute, &graph),
                             "cudaStreamEndCapture"));
  if (captured.ok()) {
    absl::StatusOr<std::unique_ptr<Recording>> recording =
        Instantiate(graph, compute);
    cudaGraphDestroy(graph);
    return recording;
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return captured;
}

// A capture must end with everything on the stream on which it began. A stream
// that has not joined it, as with a model without variables, must not.
absl::Status CudaRecorder::JoinCopies() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  RETURN_IF_ERROR(CudaStatus(cudaStreamIsCapturing(copy_out_, &status),
                             "cudaStreamIsCapturing"));
  if (status == cudaStreamCaptureStatusNone) return absl::OkStatus();
  return device_.Order(Device::Stream::kCopyOut, Device::Stream::kCompute);
}

absl::Status CudaRecorder::Replay(Recording& recording) {
  ASSIGN_OR_RETURN(CUstream_st* const compute, device_.ComputeStream());
  RETURN_IF_ERROR(CudaStatus(
      cudaGraphLaunch(static_cast<CudaRecording&>(recording).graph(), compute),
      "cudaGraphLaunch"));
  ++replayed_;
  return absl::OkStatus();
}

}  // namespace parasol
