// Devices, errors and memory.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

namespace cuda_on_host {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

std::set<int>& Contexts() {
  static auto* const contexts = new std::set<int>;
  return *contexts;
}

bool IsDevice(int device) { return device >= 0 && device < DeviceCount(); }

bool OnHost(const Allocation* allocation) {
  return allocation == nullptr || allocation->device == kPinned;
}

// The kind of a copy, by where its ends lie.
cudaMemcpyKind KindOf(const void* to, const void* from) {
  const bool to_host = OnHost(FindAllocation(to));
  const bool from_host = OnHost(FindAllocation(from));
  if (to_host) {
    return from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  }
  return from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

Kind KindOfTask(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Kind::kCopyIn;
    case cudaMemcpyDeviceToHost:
      return Kind::kCopyOut;
    default:
      return Kind::kCompute;
  }
}

void RequireInside(const void* data, size_t bytes, const char* what) {
  if (!IsInside(data, bytes)) {
    Die(std::string(what) + " names memory that was freed");
  }
}

void CountCopy(cudaMemcpyKind kind, size_t bytes) {
  Counts& counts = TheCounts();
  if (kind == cudaMemcpyHostToDevice) {
    ++counts.copies_in;
    counts.bytes_in += bytes;
  } else if (kind == cudaMemcpyDeviceToHost) {
    ++counts.copies_out;
    counts.bytes_out += bytes;
  } else {
    ++counts.copies_within;
  }
}

cudaError_t New(void** result, size_t bytes, int device) {
  if (result == nullptr) return Fail(cudaErrorInvalidValue);
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (BreaksCapture()) return Fail(cudaErrorStreamCaptureUnsupported);
  *result = Allocate(bytes, device);
  return *result == nullptr ? Fail(cudaErrorMemoryAllocation) : cudaSuccess;
}

// Waits for all work, as CUDA does, which may name the memory.
cudaError_t Release(void* data, bool pinned) {
  CurrentDevice();
  if (data == nullptr) return cudaSuccess;
  if (BreaksCapture()) return Fail(cudaErrorStreamCaptureUnsupported);
  DemandAll(-1);
  return Free(data, pinned) ? cudaSuccess : Fail(cudaErrorInvalidValue);
}

}  // namespace

std::recursive_mutex& TheLock() {
  static auto* const lock = new std::recursive_mutex;
  return *lock;
}

cudaError_t Fail(cudaError_t error) {
  last_error = error;
  return error;
}

cudaError_t FaultOfRuntime(const char* name) {
  const int lost = LostStatus();
  if (lost != 0) return static_cast<cudaError_t>(lost);
  const int fault = FaultOf(name);
  LoseDevicesIfFatal(fault);
  return static_cast<cudaError_t>(fault);
}

int CurrentDevice() {
  Contexts().insert(current_device);
  return current_device;
}

// Pairs of a device and its peer.
std::set<std::pair<int, int>>& Peers() {
  static auto* const peers = new std::set<std::pair<int, int>>;
  return *peers;
}

bool IsPeer(int device, int other) { return Peers().contains({device, other}); }

bool HasContext(int device) {
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  return Contexts().contains(device);
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaGetDeviceCount(int* count) {
  CUDA_ON_HOST_ENTER();
  *count = DeviceCount();
  return *count > 0 ? cudaSuccess : Fail(cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  CUDA_ON_HOST_ENTER();
  if (!IsDevice(device)) return Fail(cudaErrorInvalidDevice);
  *prop = {};
  std::snprintf(prop->name, sizeof(prop->name), "CUDA on the host");
  prop->totalGlobalMem = size_t{16} << 30;
  prop->major = 8;
  prop->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  CUDA_ON_HOST_ENTER();
  if (!IsDevice(device)) return Fail(cudaErrorInvalidDevice);
  ++TheCounts().device_selections;
  current_device = device;
  CurrentDevice();
  return cudaSuccess;
}

// Also once the device is lost.
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr,
                                   int device) {
  CUDA_ON_HOST_ENTER();
  if (!IsDevice(device)) return Fail(cudaErrorInvalidDevice);
  switch (attr) {
    case cudaDevAttrMultiProcessorCount:
      *value = 1;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 8;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = 0;
      return cudaSuccess;
  }
  return Fail(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize() {
  CUDA_ON_HOST_ENTER();
  if (BreaksCapture()) return Fail(cudaErrorStreamCaptureUnsupported);
  AwaitAll(CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* canAccessPeer, int device,
                                    int peerDevice) {
  CUDA_ON_HOST_ENTER();
  if (!IsDevice(device) || !IsDevice(peerDevice)) {
    return Fail(cudaErrorInvalidDevice);
  }
  *canAccessPeer = device != peerDevice;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  const int device = CurrentDevice();
  if (flags != 0) return Fail(cudaErrorInvalidValue);
  if (!IsDevice(peerDevice) || peerDevice == device) {
    return Fail(cudaErrorInvalidDevice);
  }
  const bool is_new = Peers().emplace(device, peerDevice).second;
  return is_new ? cudaSuccess : Fail(cudaErrorPeerAccessAlreadyEnabled);
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "another error of CUDA on the host";
  }
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  CUDA_ON_HOST_ENTER();
  return New(devPtr, size, CurrentDevice());
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  CUDA_ON_HOST_ENTER();
  CurrentDevice();
  if (flags != cudaHostAllocDefault) return Fail(cudaErrorInvalidValue);
  return New(pHost, size, kPinned);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src,
                                int srcDevice, size_t count,
                                cudaStream_t stream) {
  {
    CUDA_ON_HOST_ENTER();
    if (!IsDevice(dstDevice) || !IsDevice(srcDevice)) {
      return Fail(cudaErrorInvalidDevice);
    }
    const Allocation* const to = FindAllocation(dst);
    const Allocation* const from = FindAllocation(src);
    if (count > 0 && (to == nullptr || to->device != dstDevice ||
                      from == nullptr || from->device != srcDevice)) {
      Invalidate(stream);
      return Fail(cudaErrorInvalidValue);
    }
  }
  return cudaMemcpyAsync(dst, src, count, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaFree(void* devPtr) {
  CUDA_ON_HOST_ENTER();
  return Release(devPtr, /*pinned=*/false);
}

cudaError_t cudaFreeHost(void* ptr) {
  CUDA_ON_HOST_ENTER();
  return Release(ptr, /*pinned=*/true);
}

// Refuses pageable host memory, of which CUDA makes a synchronous copy first:
// the project means all its copies to be asynchronous.
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  if (count == 0) return cudaSuccess;
  if (!IsInside(dst, count) || !IsInside(src, count)) {
    Invalidate(stream);
    return Fail(cudaErrorInvalidValue);
  }
  const cudaMemcpyKind found = KindOf(dst, src);
  if (kind != cudaMemcpyDefault && kind != found) {
    return Fail(cudaErrorInvalidMemcpyDirection);
  }
  CountCopy(found, count);
  return Enqueue(stream, KindOfTask(found), [=] {
    RequireInside(dst, count, "a copy");
    RequireInside(src, count, "a copy");
    WatchRead(src, count);
    WatchWrite(dst, count);
    std::memcpy(dst, src, count);
  });
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count,
                            cudaStream_t stream) {
  CUDA_ON_HOST_ENTER();
  if (count == 0) return cudaSuccess;
  if (!IsInside(devPtr, count)) {
    Invalidate(stream);
    return Fail(cudaErrorInvalidValue);
  }
  ++TheCounts().memsets;
  return Enqueue(stream, Kind::kCompute, [=] {
    RequireInside(devPtr, count, "a memset");
    WatchWrite(devPtr, count);
    std::memset(devPtr, value, count);
  });
}
