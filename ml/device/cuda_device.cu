#include <cuda_runtime.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "ml/device/cuda_device.h"
#include "ml/device/cuda_graph_check.h"
#include "ml/device/cuda_scratch.h"
#include "ml/device/cuda_status.h"

namespace parasol {
namespace {

class CudaEvent : public Device::Event {
 public:
  explicit CudaEvent(cudaEvent_t event) : event_(event) {}
  ~CudaEvent() override { cudaEventDestroy(event_); }

  cudaEvent_t get() const { return event_; }

 private:
  const cudaEvent_t event_;
};

// Not timed: such events cost the streams nothing.
absl::StatusOr<cudaEvent_t> CreateEvent(unsigned int flags = 0) {
  cudaEvent_t event = nullptr;
  RETURN_IF_ERROR(CudaStatus(
      cudaEventCreateWithFlags(&event, cudaEventDisableTiming | flags),
      "cudaEventCreate"));
  return event;
}

// Device that the calling thread selected last, so that it need not select it
// again: a step makes some thousand calls. Nothing else in this program selects
// a device, but for what calls SelectAnew().
thread_local std::optional<int> selected;

absl::Status SelectDevice(int index) {
  if (selected == index) return absl::OkStatus();
  selected.reset();
  RETURN_IF_ERROR(CudaStatus(cudaSetDevice(index), "cudaSetDevice"));
  selected = index;
  return absl::OkStatus();
}

}  // namespace

absl::Status CudaDevice::CheckIndex(int index) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess) {
    return absl::InvalidArgumentError(
        absl::StrCat("this machine has no CUDA device that can be used (",
                     cudaGetErrorString(found), "); use cpu"));
  }
  if (index < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("this machine has only ", count,
                   " CUDA devices, which are numbered from cuda:0"));
}

CudaDevice::CudaDevice(int index, std::string name, Precision precision)
    : Device(Kind::kCuda, std::move(name)),
      index_(index),
      precision_(precision) {}
// CUDA says that the driver is too old also where there is none.
bool CudaDevice::IsPresent() {
  int count = 0;
  switch (cudaGetDeviceCount(&count)) {
    case cudaErrorNoDevice:
      return false;
    case cudaErrorInsufficientDriver:
      return access("/proc/driver/nvidia/version", F_OK) == 0;
    default:
      return true;
  }
}

absl::StatusOr<std::unique_ptr<Device>> CudaDevice::Open(
    int index, const Options& options) {
  const std::string name = absl::StrCat("cuda:", index);
  cudaDeviceProp properties;
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, index),
                             "cudaGetDeviceProperties"))
      << "device " << name;
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(index, absl::StrCat(name, " (", properties.name, ")"),
                     options.precision));
  RETURN_IF_ERROR(device->Start(options)) << "device " << name;
  return device;
}

absl::Status CudaDevice::Start(const Options& options) {
  RETURN_IF_ERROR(Select());
  for (CUstream_st*& stream : streams_) {
    RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "cudaStreamCreate"));
  }
  ASSIGN_OR_RETURN(order_, CreateEvent());
  scratch_ = std::make_unique<CudaScratch>(Get(Stream::kCompute), releases_);
  ASSIGN_OR_RETURN(
      blas_, CudaBlas::Open(Get(Stream::kCompute), precision_, releases_));
  if (options.cuda_graphs) StartRecorder();
  return absl::OkStatus();
}

void CudaDevice::StartRecorder() {
  recorder_ = std::make_unique<CudaRecorder>(*this, Get(Stream::kCopyOut));
  const absl::Status checked = CheckWaitsForReplays(*this, *recorder_);
  if (checked.ok()) return;
  LOG(WARNING) << name() << ": steps are not recorded, each kernel is "
               << "launched by itself: " << checked.message();
  recorder_ = nullptr;
}

CudaDevice::~CudaDevice() {
  Select().IgnoreError();
  dnn_.reset();
  blas_.reset();
  scratch_.reset();
  if (order_ != nullptr) cudaEventDestroy(order_);
  for (CUstream_st* stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

absl::Status CudaDevice::Select() { return SelectDevice(index_); }

void CudaDevice::SelectAnew() { selected.reset(); }

absl::StatusOr<CUstream_st*> CudaDevice::ComputeStream() {
  RETURN_IF_ERROR(Select());
  return Get(Stream::kCompute);
}

absl::StatusOr<CUstream_st*> CudaDevice::StreamOf(Stream stream) {
  RETURN_IF_ERROR(Select());
  return Get(stream);
}

CUevent_st* CudaDevice::EventOf(Event& event) {
  return static_cast<CudaEvent&>(event).get();
}

absl::StatusOr<float*> CudaDevice::Scratch(size_t elements) {
  RETURN_IF_ERROR(Select());
  ASSIGN_OR_RETURN(void* const data,
                   scratch_->Reserve(elements * sizeof(float)));
  return static_cast<float*>(data);
}

absl::StatusOr<CudaDnn*> CudaDevice::dnn() {
  if (dnn_ == nullptr) {
    RETURN_IF_ERROR(Select());
    absl::StatusOr<std::unique_ptr<CudaDnn>> dnn =
        CudaDnn::Open(Get(Stream::kCompute), precision_, releases_);
    if (absl::IsFailedPrecondition(dnn.status())) {
      LOG_EVERY(WARNING, absl::InfiniteDuration())
          << "convolutions are computed without cuDNN, which is slower: "
          << dnn.status().message() << "; install all of cuDNN 9";
    }
    ASSIGN_OR_RETURN(dnn_, std::move(dnn));
  }
  return dnn_.get();
}

// A stream that waits for an event waits for what was recorded last when it was
// told to, so one event serves all.
absl::Status CudaDevice::Order(Stream earlier, Stream later) {
  RETURN_IF_ERROR(Select());
  RETURN_IF_ERROR(
      CudaStatus(cudaEventRecord(order_, Get(earlier)), "cudaEventRecord"))
      << name();
  RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(Get(later), order_, 0),
                             "cudaStreamWaitEvent"))
      << name();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Device::Event>> CudaDevice::NewEvent() {
  RETURN_IF_ERROR(Select());
  // The host waits for it, asleep: a core that spins is one that other
  // processes of the job need.
  ASSIGN_OR_RETURN(cudaEvent_t event, CreateEvent(cudaEventBlockingSync));
  return std::make_unique<CudaEvent>(event);
}

// In a recording the host's events are external: each replay records them, as a
// plain call would, and the host waits for that. Order()'s event is not: there
// it says what of the recording depends on what.
absl::Status CudaDevice::Record(Stream stream, Event& event) {
  RETURN_IF_ERROR(Select());
  const bool records = recorder_ != nullptr && recorder_->is_recording();
  RETURN_IF_ERROR(CudaStatus(
      cudaEventRecordWithFlags(
          static_cast<CudaEvent&>(event).get(), Get(stream),
          records ? cudaEventRecordExternal : cudaEventRecordDefault),
      "cudaEventRecord"))
      << name();
  return absl::OkStatus();
}

absl::Status CudaDevice::Follow(Event& event, Stream later) {
  RETURN_IF_ERROR(Select());
  RETURN_IF_ERROR(CudaStatus(cudaStreamWaitEvent(Get(later), EventOf(event), 0),
                             "cudaStreamWaitEvent"))
      << name();
  return absl::OkStatus();
}

absl::Status CudaDevice::Wait(Event& event) {
  RETURN_IF_ERROR(Select());
  return CudaStatus(cudaEventSynchronize(static_cast<CudaEvent&>(event).get()),
                    name());
}

absl::Status CudaDevice::Synchronize() {
  RETURN_IF_ERROR(Select());
  for (CUstream_st* stream : streams_) {
    RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream), name()));
  }
  return absl::OkStatus();
}

absl::StatusOr<void*> CudaDevice::Allocate(size_t bytes, bool on_host) {
  RETURN_IF_ERROR(Select());
  void* data = nullptr;
  const cudaError_t error =
      on_host ? cudaHostAlloc(&data, bytes, cudaHostAllocDefault)
              : cudaMalloc(&data, bytes);
  RETURN_IF_ERROR(CudaStatus(error, absl::StrCat(bytes, " bytes")))
      << name() << (on_host ? ", pinned memory" : ", device memory");
  if (bytes == 0) return data;
  absl::Status zeroed = Zero(data, bytes);
  if (!zeroed.ok()) {
    Free(data, on_host);
    return zeroed;
  }
  return data;
}

// On the compute stream and waited for: these streams do not wait for the
// default stream, where a plain cudaMemset() would run.
absl::Status CudaDevice::Zero(void* data, size_t bytes) {
  CUstream_st* const stream = Get(Stream::kCompute);
  RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(data, 0, bytes, stream), name()));
  return CudaStatus(cudaStreamSynchronize(stream), name());
}

// CUDA makes a context on the thread's device when it frees.
void CudaDevice::Free(void* data, bool on_host) {
  Select().IgnoreError();
  if (on_host) {
    cudaFreeHost(data);
  } else {
    // A pass that updates variables on the device returns before it is done;
    // CUDA only says that a release may wait for such work.
    cudaStreamSynchronize(Get(Stream::kCompute));
    // Gradients may be copied beside and behind the pass.
    cudaStreamSynchronize(Get(Stream::kCopyOut));
    cudaFree(data);
  }
}

absl::Status CudaDevice::CopyBytes(Stream stream, const void* from, void* to,
                                   size_t bytes) {
  RETURN_IF_ERROR(Select());
  return CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Get(stream)), name());
}

}  // namespace parasol
