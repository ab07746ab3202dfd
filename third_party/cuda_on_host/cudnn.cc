// cuDNN: descriptors, and graphs of one convolution.

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "third_party/cuda_on_host/convolution.h"
#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/dnn_graph.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace cuda_on_host {
namespace {

constexpr int64_t kChoices = kRight + 1;
constexpr int64_t kWorkspaceBytes = 4096;
constexpr int64_t kHugeBytes = int64_t{1} << 40;

const Descriptor& ConfigurationOf(const Descriptor& plan, bool& is_whole) {
  Reader reader(plan);
  reader.One<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                            CUDNN_TYPE_HANDLE);
  const Descriptor& configuration =
      reader.Part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  is_whole = reader.is_whole();
  return configuration;
}

// A plan may compile, and takes memory.
cudnnStatus_t FinalizePlan(const Descriptor& plan) {
  bool is_whole = false;
  const Descriptor& configuration = ConfigurationOf(plan, is_whole);
  if (!is_whole) return CUDNN_STATUS_BAD_PARAM;
  if (BreaksCapture()) return CUDNN_STATUS_EXECUTION_FAILED;
  return configuration.choice == kRefused ? CUDNN_STATUS_NOT_SUPPORTED
                                          : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Finalize(const Descriptor& descriptor) {
  Convolution s;
  ArrayNames names;
  Reader reader(descriptor);
  switch (descriptor.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return ReadArray(descriptor, s.x);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return ReadConvolution(descriptor, s);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return ReadGraph(descriptor, s, names);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      reader.One<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE,
                                         CUDNN_TYPE_HEUR_MODE);
      reader.Part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      return reader.is_whole() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return FinalizePlan(descriptor);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return CUDNN_STATUS_SUCCESS;
    default:
      return ReadOperation(descriptor, s, names);
  }
}

// Makes configurations of the descriptors at `results`.
int64_t Choose(const Descriptor& heuristics, int64_t requested, void* results) {
  Reader reader(heuristics);
  const auto mode = reader.One<cudnnBackendHeurMode_t>(
      CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE);
  const Descriptor& graph = reader.Part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const int64_t count =
      mode == CUDNN_HEUR_MODE_A ? std::min<int64_t>(requested, kChoices) : 0;
  for (int64_t i = 0; i < count; ++i) {
    Descriptor& configuration =
        At(static_cast<cudnnBackendDescriptor_t*>(results)[i]);
    configuration.graph = &graph;
    configuration.choice = static_cast<Choice>(i);
    configuration.is_finalized = true;
  }
  return count;
}

std::vector<cudnnBackendNumericalNote_t> NotesOf(Choice choice) {
  switch (choice) {
    case kOtherBitsEachTime:
      return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
              CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    case kHalfSums:
      return {CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
    case kWinograd:
      return {CUDNN_NUMERICAL_NOTE_WINOGRAD};
    default:
      return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  }
}

double FactorOf(Choice choice) {
  switch (choice) {
    case kOtherBitsEachTime:
      return 1 + 1e-4 * static_cast<double>(TheRandom().Below(1000));
    case kHalfSums:
    case kWinograd:
      return 1.5;
    default:
      return 1;
  }
}

// The arrays of one call.
struct Arrays {
  void *x = nullptr, *w = nullptr, *y = nullptr, *workspace = nullptr;
};

cudnnStatus_t ReadArrays(const Descriptor& pack, const ArrayNames& names,
                         Arrays& arrays) {
  Reader reader(pack);
  const auto ids = reader.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                       CUDNN_TYPE_INT64, 3);
  const auto pointers = reader.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, 3);
  arrays.workspace =
      reader.One<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR);
  if (!reader.is_whole()) return CUDNN_STATUS_BAD_PARAM;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == names.x) arrays.x = pointers[i];
    if (ids[i] == names.w) arrays.w = pointers[i];
    if (ids[i] == names.y) arrays.y = pointers[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Check(const Convolution& s, const Arrays& arrays) {
  if (!IsInside(arrays.workspace, kWorkspaceBytes)) {
    return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  }
  for (const auto& [data, bytes] :
       {std::pair(arrays.x, s.x.bytes()), std::pair(arrays.w, s.w.bytes()),
        std::pair(arrays.y, s.y.bytes())}) {
    if (data == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0) {
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    }
    if (!IsInside(data, bytes)) {
      Die("a convolution's operand does not lie in the device's memory");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

void Watch(const void* data, size_t bytes, bool is_written) {
  if (is_written) {
    WatchWrite(data, bytes);
  } else {
    WatchRead(data, bytes);
  }
}

// Computes, and overwrites the workspace.
void Run(const Convolution& s, const Arrays& arrays) {
  if (Check(s, arrays) != CUDNN_STATUS_SUCCESS) {
    Die("a convolution's workspace was freed");
  }
  Watch(arrays.x, s.x.bytes(), s.pass == ConvolutionPass::kInputGradient);
  Watch(arrays.w, s.w.bytes(), s.pass == ConvolutionPass::kFilterGradient);
  Watch(arrays.y, s.y.bytes(), s.pass == ConvolutionPass::kForward);
  WatchWrite(arrays.workspace, kWorkspaceBytes);
  std::fill_n(static_cast<char*>(arrays.workspace), kWorkspaceBytes, '\xff');
  s.Compute(arrays.x, arrays.w, arrays.y);
}

cudnnStatus_t Execute(cudnnHandle_t handle, const Descriptor& plan,
                      const Descriptor& pack) {
  if (!plan.is_finalized || !pack.is_finalized) {
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  bool is_whole = false;
  const Descriptor& configuration = ConfigurationOf(plan, is_whole);
  if (!is_whole) return CUDNN_STATUS_BAD_PARAM;
  Convolution s;
  ArrayNames names;
  Arrays arrays;
  for (const cudnnStatus_t status :
       {ReadGraph(At(const_cast<Descriptor*>(configuration.graph)), s, names),
        ReadArrays(pack, names, arrays), Check(s, arrays)}) {
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  s.factor = FactorOf(configuration.choice);
  ++TheCounts().library_calls;
  return Enqueue(handle->stream, Kind::kCompute,
                 [s, arrays] { Run(s, arrays); }) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

template <typename T>
int64_t Answer(const std::vector<T>& values, int64_t requested, void* to) {
  const int64_t count = std::min<int64_t>(requested, values.size());
  std::copy_n(values.begin(), count, static_cast<T*>(to));
  return count;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

#define CUDNN_ENTER()                                            \
  const std::lock_guard<std::recursive_mutex> lock(TheLock());   \
  if (IsLostFor(__func__)) return CUDNN_STATUS_EXECUTION_FAILED; \
  if (const int fault = FaultOf(__func__)) return cudnnStatus_t(fault)

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  CUDNN_ENTER();
  if (BreaksCapture()) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  CUDNN_ENTER();
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  CUDNN_ENTER();
  if (!IsLive(streamId)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = streamId;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t descriptorType,
    cudnnBackendDescriptor_t* descriptor) {
  CUDNN_ENTER();
  *descriptor = new Descriptor{.type = descriptorType};
  LiveDescriptors().insert(*descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(
    cudnnBackendDescriptor_t descriptor) {
  // What lies on the host can be destroyed once a device is lost.
  const std::lock_guard<std::recursive_mutex> lock(TheLock());
  delete &At(descriptor);
  LiveDescriptors().erase(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  CUDNN_ENTER();
  Descriptor& at = At(descriptor);
  const cudnnStatus_t status = Finalize(at);
  at.is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendSetAttribute(
    cudnnBackendDescriptor_t descriptor,
    cudnnBackendAttributeName_t attributeName,
    cudnnBackendAttributeType_t attributeType, int64_t elementCount,
    const void* arrayOfElements) {
  CUDNN_ENTER();
  Descriptor& at = At(descriptor);
  if (at.is_finalized || elementCount <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (arrayOfElements == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const auto* const bytes = static_cast<const char*>(arrayOfElements);
  at.attributes[attributeName] = {
      attributeType,
      elementCount,
      {bytes, bytes + elementCount * BytesOf(attributeType)}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(
    cudnnBackendDescriptor_t descriptor,
    cudnnBackendAttributeName_t attributeName,
    cudnnBackendAttributeType_t attributeType, int64_t requestedElementCount,
    int64_t* elementCount, void* arrayOfElements) {
  CUDNN_ENTER();
  const Descriptor& at = At(descriptor);
  if (!at.is_finalized && at.type != CUDNN_BACKEND_ENGINE_DESCRIPTOR) {
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  switch (attributeName) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *elementCount = Choose(at, requestedElementCount, arrayOfElements);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      At(*static_cast<cudnnBackendDescriptor_t*>(arrayOfElements)).choice =
          at.choice;
      *elementCount = 1;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *elementCount =
          Answer(NotesOf(at.choice), requestedElementCount, arrayOfElements);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      bool is_whole = false;
      const Choice choice = ConfigurationOf(at, is_whole).choice;
      *elementCount =
          Answer(std::vector<int64_t>{choice == kHugeMemory ? kHugeBytes
                                                            : kWorkspaceBytes},
                 requestedElementCount, arrayOfElements);
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                  cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
  CUDNN_ENTER();
  return Execute(handle, At(executionPlan), At(variantPack));
}
