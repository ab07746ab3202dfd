#ifndef PARASOL_THIRD_PARTY_CUDA_ON_HOST_RUNTIME_H_
#define PARASOL_THIRD_PARTY_CUDA_ON_HOST_RUNTIME_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "third_party/cuda_on_host/tasks.h"

// Work of a graph that waits for the nodes `after`.
struct CUgraph_st {
  struct Node {
    cuda_on_host::Kind kind = cuda_on_host::Kind::kNone;
    std::function<void()> run = {};
    std::vector<size_t> after = {};
    // Event that each launch records, or null.
    cudaEvent_t external = nullptr;
    cudaStream_t captured_on = nullptr;
  };
  std::vector<Node> nodes;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  cuda_on_host::TaskPtr last = nullptr;
};

namespace cuda_on_host {

// State that streams which capture together have in common.
struct Capture {
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool is_valid = true;
  CUgraph_st graph;
  std::vector<cudaStream_t> streams;
};
using CapturePtr = std::shared_ptr<Capture>;

}  // namespace cuda_on_host

struct CUstream_st {
  int device = 0;
  cuda_on_host::TaskPtr last = nullptr;
  // Null unless it captures: then the nodes that its next node waits for count.
  cuda_on_host::CapturePtr capture = nullptr;
  std::vector<size_t> tail = {};
};

struct CUevent_st {
  int device = 0;
  unsigned int flags = 0;
  cuda_on_host::TaskPtr marked = nullptr;
  // Null unless it was last recorded in a capture, behind the nodes `tail`.
  cuda_on_host::CapturePtr capture = nullptr;
  std::vector<size_t> tail = {};
};

namespace cuda_on_host {

// Guards all of the runtime's state. Each function of the runtime holds it.
std::recursive_mutex& TheLock();

// Makes `error` the thread's last error, and returns it.
cudaError_t Fail(cudaError_t error);

// Returns the status that a test wants of this call of the runtime's function
// `name`, or with which its devices were lost; otherwise cudaSuccess.
cudaError_t FaultOfRuntime(const char* name);

// The calling thread's device. Makes a context on it.
int CurrentDevice();

// Returns true if kernels on `device` may use the memory of `other`.
bool IsPeer(int device, int other);

bool IsLive(cudaStream_t stream);
bool IsLive(cudaEvent_t event);

// Enqueues work, or adds it to a capture.
cudaError_t Enqueue(cudaStream_t stream, Kind kind, std::function<void()> run);

// Adds a node to the stream's capture.
cudaError_t AddNode(cudaStream_t stream, CUgraph_st::Node node);

// Returns true if the calling thread captures in a mode that forbids calls such
// as allocations, and invalidates these captures.
bool BreaksCapture();

// Ends the capture of `stream` with an error, if there is one.
void Invalidate(cudaStream_t stream);

}  // namespace cuda_on_host

// Holds the lock for the rest of the function, a part of CUDA's interface, and
// returns the status that a test wants of it.
#define CUDA_ON_HOST_ENTER()                                                \
  const std::lock_guard<std::recursive_mutex> cuda_on_host_lock(            \
      ::cuda_on_host::TheLock());                                           \
  if (const cudaError_t fault = ::cuda_on_host::FaultOfRuntime(__func__)) { \
    return ::cuda_on_host::Fail(fault);                                     \
  }

#endif  // PARASOL_THIRD_PARTY_CUDA_ON_HOST_RUNTIME_H_
