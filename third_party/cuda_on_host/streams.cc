// Streams and events.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <set>
#include <utility>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

std::set<const void*>& Live() {
  static auto* const live = new std::set<const void*>;
  return *live;
}

int spinning_waits = 0;

// Has the stream's next node wait for the nodes that `event` marks.
cudaError_t WaitInCapture(cudaStream_t stream, const CUevent_st& event) {
  if (event.capture == nullptr) {
    if (stream->capture == nullptr) return cudaSuccess;
    if (event.marked == nullptr) return cudaSuccess;
    Invalidate(stream);
    return Fail(cudaErrorStreamCaptureIsolation);
  }
  if (event.capture->origin == nullptr) return Fail(cudaErrorCapturedEvent);
  if (stream->capture == nullptr) {
    stream->capture = event.capture;
    stream->tail.clear();
    event.capture->streams.push_back(stream);
  }
  if (stream->capture != event.capture) {
    Invalidate(stream);
    return Fail(cudaErrorStreamCaptureMerge);
  }
  for (size_t node : event.tail) {
    if (std::find(stream->tail.begin(), stream->tail.end(), node) ==
        stream->tail.end()) {
      stream->tail.push_back(node);
    }
  }
  return cudaSuccess;
}

cudaError_t RecordInCapture(CUevent_st& event, cudaStream_t stream,
                            unsigned int flags) {
  if (flags == cudaEventRecordExternal) {
    return AddNode(stream, {.external = &event});
  }
  event.capture = stream->capture;
  event.tail = stream->tail;
  return cudaSuccess;
}

}  // namespace

bool IsLive(cudaStream_t stream) { return Live().contains(stream); }
bool IsLive(cudaEvent_t event) { return Live().contains(event); }

int SpinningWaits() {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  return spinning_waits;
}

cudaError_t Enqueue(cudaStream_t stream, Kind kind, std::function<void()> run) {
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    return AddNode(stream, {.kind = kind, .run = std::move(run)});
  }
  stream->last = AddTask(kind, stream->device, std::move(run), {stream->last},
                         {.stream = stream});
  Advance();
  return cudaSuccess;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream,
                                      unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  // Other streams would wait for the default stream, which is not here.
  if (flags != cudaStreamNonBlocking) return Fail(cudaErrorInvalidValue);
  *pStream = new CUstream_st{.device = CurrentDevice()};
  Live().insert(*pStream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  Invalidate(stream);
  Demand(stream->last);
  ForgetTracks(stream);
  Live().erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  CurrentDevice();
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    Invalidate(stream);
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  ++TheCounts().synchronizations;
  Await(stream->last);
  return cudaSuccess;
}

// Runs the work in the end, for a host that asks again and again.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream)) return Fail(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) {
    Invalidate(stream);
    return Fail(cudaErrorStreamCaptureUnsupported);
  }
  Advance();
  if (stream->last == nullptr) return cudaSuccess;
  if (stream->last->done) {
    ComeAfter(stream->last->end);
    return cudaSuccess;
  }
  if (TheRandom().Below(16) == 0) Demand(stream->last);
  return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream) || !IsLive(event)) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  if (flags != 0) return Fail(cudaErrorInvalidValue);
  ++TheCounts().stream_waits;
  if (stream->capture != nullptr || event->capture != nullptr) {
    return WaitInCapture(stream, *event);
  }
  stream->last = AddTask(Kind::kNone, stream->device, nullptr,
                         {stream->last, event->marked}, {.stream = stream});
  Advance();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  *event = new CUevent_st{.device = CurrentDevice(), .flags = flags};
  Live().insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(event)) return Fail(cudaErrorInvalidResourceHandle);
  Live().erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(stream) || !IsLive(event) || event->device != stream->device) {
    return Fail(cudaErrorInvalidResourceHandle);
  }
  ++TheCounts().records;
  if (stream->capture != nullptr) {
    return RecordInCapture(*event, stream, flags);
  }
  if (flags != cudaEventRecordDefault) return Fail(cudaErrorInvalidValue);
  event->capture = nullptr;
  event->marked = AddTask(Kind::kNone, stream->device, nullptr, {stream->last},
                          {.stream = stream});
  stream->last = event->marked;
  Advance();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CUDA_ON_HOST_ENTER();
  CurrentDevice();
  if (!IsLive(event)) return Fail(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) {
    event->capture->is_valid = false;
    return Fail(cudaErrorCapturedEvent);
  }
  ++TheCounts().synchronizations;
  if ((event->flags & cudaEventBlockingSync) == 0) ++spinning_waits;
  Await(event->marked);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  CUDA_ON_HOST_ENTER();
  if (!IsLive(event)) return Fail(cudaErrorInvalidResourceHandle);
  if (event->capture != nullptr) return Fail(cudaErrorCapturedEvent);
  Advance();
  if (event->marked == nullptr) return cudaSuccess;
  if (event->marked->done) {
    ComeAfter(event->marked->end);
    return cudaSuccess;
  }
  if (TheRandom().Below(16) == 0) Demand(event->marked);
  return cudaErrorNotReady;
}
