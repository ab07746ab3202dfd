// cuDNN: convolutions as plain loops over NHWC images.

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/round.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  int64_t n = 0, c = 0, h = 0, w = 0;
};
struct cudnnFilterStruct {
  int64_t k = 0, c = 0, h = 0, w = 0;
};
struct cudnnConvolutionStruct {
  int64_t pad_h = 0, pad_w = 0, stride_h = 1, stride_w = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

namespace cuda_on_host {
namespace {

// Bytes that an algorithm wants of the caller.
constexpr size_t kWorkspaceBytes = 4096;

bool MayUseTf32(cudnnMathType_t math) { return math != CUDNN_FMA_MATH; }

size_t Bytes(const cudnnTensorStruct& t) {
  return sizeof(float) * t.n * t.c * t.h * t.w;
}
size_t Bytes(const cudnnFilterStruct& f) {
  return sizeof(float) * f.k * f.c * f.h * f.w;
}

int64_t Outputs(int64_t in, int64_t pad, int64_t window, int64_t stride) {
  return in + 2 * pad < window ? 0 : (in + 2 * pad - window) / stride + 1;
}

// A convolution with all its sizes.
struct Convolution {
  cudnnTensorStruct x, y;
  cudnnFilterStruct w;
  cudnnConvolutionStruct how;

  bool Fits() const {
    return x.n == y.n && x.c == w.c && y.c == w.k &&
           y.h == Outputs(x.h, how.pad_h, w.h, how.stride_h) &&
           y.w == Outputs(x.w, how.pad_w, w.w, how.stride_w);
  }

  float Factor(float value) const {
    return MayUseTf32(how.math) ? RoundToTf32(value) : value;
  }

  // Calls each(first element of x, of w, of y) for each pixel and each place in
  // the window that covers it.
  template <typename Each>
  void ForEachPair(const Each& each) const {
    for (int64_t n = 0; n < y.n; ++n) {
      for (int64_t i = 0; i < y.h; ++i) {
        for (int64_t j = 0; j < y.w; ++j) {
          for (int64_t k = 0; k < w.h; ++k) {
            const int64_t row = i * how.stride_h + k - how.pad_h;
            if (row < 0 || row >= x.h) continue;
            for (int64_t l = 0; l < w.w; ++l) {
              const int64_t column = j * how.stride_w + l - how.pad_w;
              if (column < 0 || column >= x.w) continue;
              each(((n * x.h + row) * x.w + column) * x.c, (k * w.w + l) * w.c,
                   ((n * y.h + i) * y.w + j) * y.c);
            }
          }
        }
      }
    }
  }
};

void Store(const std::vector<double>& from, float* to) {
  std::transform(from.begin(), from.end(), to,
                 [](double value) { return static_cast<float>(value); });
}

void Forward(const Convolution& s, const float* x, const float* w, float* y) {
  std::vector<double> sum(Bytes(s.y) / sizeof(float));
  const int64_t step = s.w.h * s.w.w * s.w.c;
  s.ForEachPair([&](int64_t at_x, int64_t at_w, int64_t at_y) {
    for (int64_t f = 0; f < s.w.k; ++f) {
      for (int64_t c = 0; c < s.x.c; ++c) {
        sum[at_y + f] +=
            double{s.Factor(x[at_x + c])} * s.Factor(w[f * step + at_w + c]);
      }
    }
  });
  Store(sum, y);
}

void FilterGradient(const Convolution& s, const float* x, const float* dy,
                    float* dw) {
  std::vector<double> sum(Bytes(s.w) / sizeof(float));
  const int64_t step = s.w.h * s.w.w * s.w.c;
  s.ForEachPair([&](int64_t at_x, int64_t at_w, int64_t at_y) {
    for (int64_t f = 0; f < s.w.k; ++f) {
      for (int64_t c = 0; c < s.x.c; ++c) {
        sum[f * step + at_w + c] +=
            double{s.Factor(x[at_x + c])} * s.Factor(dy[at_y + f]);
      }
    }
  });
  Store(sum, dw);
}

void InputGradient(const Convolution& s, const float* w, const float* dy,
                   float* dx) {
  std::vector<double> sum(Bytes(s.x) / sizeof(float));
  const int64_t step = s.w.h * s.w.w * s.w.c;
  s.ForEachPair([&](int64_t at_x, int64_t at_w, int64_t at_y) {
    for (int64_t f = 0; f < s.w.k; ++f) {
      for (int64_t c = 0; c < s.x.c; ++c) {
        sum[at_x + c] +=
            double{s.Factor(dy[at_y + f])} * s.Factor(w[f * step + at_w + c]);
      }
    }
  });
  Store(sum, dx);
}

// What all three passes are given.
struct Call {
  cudnnHandle_t handle;
  const void *alpha, *beta;
  void* workspace;
  size_t workspace_bytes;
  struct Operand {
    const void* data;
    size_t bytes;
  } operands[3];
};

cudnnStatus_t Check(const Convolution& s, const Call& call) {
  if (call.handle == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!s.Fits()) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  if (*static_cast<const float*>(call.alpha) != 1 ||
      *static_cast<const float*>(call.beta) != 0) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (call.workspace_bytes < kWorkspaceBytes ||
      !IsInside(call.workspace, call.workspace_bytes)) {
    return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  }
  for (const Call::Operand& operand : call.operands) {
    if (operand.data == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!IsInside(operand.data, operand.bytes)) {
      Die("a convolution's operand does not lie in the device's memory");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// Enqueues run(), which also overwrites the workspace.
template <typename Run>
cudnnStatus_t Start(const Convolution& s, const Call& call, const Run& run) {
  const cudnnStatus_t checked = Check(s, call);
  if (checked != CUDNN_STATUS_SUCCESS) return checked;
  ++TheCounts().library_calls;
  const cudaError_t error =
      Enqueue(call.handle->stream, Kind::kCompute, [s, call, run] {
        if (Check(s, call) != CUDNN_STATUS_SUCCESS) {
          Die("a convolution's workspace was freed");
        }
        const auto& [first, second, result] = call.operands;
        WatchRead(first.data, first.bytes);
        WatchRead(second.data, second.bytes);
        WatchWrite(result.data, result.bytes);
        WatchWrite(call.workspace, call.workspace_bytes);
        std::fill_n(static_cast<char*>(call.workspace), call.workspace_bytes,
                    '\xff');
        run();
      });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS
                              : CUDNN_STATUS_EXECUTION_FAILED;
}

// Answers a search as cuDNN does, the fastest first: one whose bits change, one
// that rounds, and one that does neither.
template <typename Algorithm, typename Result>
cudnnStatus_t Find(bool fits, Algorithm changing, Algorithm same, int wanted,
                   int* found, Result* results) {
  // A search allocates, and waits for what it tries.
  if (BreaksCapture()) return CUDNN_STATUS_EXECUTION_FAILED;
  if (!fits) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  const Result all[] = {
      {changing,
       CUDNN_STATUS_SUCCESS,
       1,
       kWorkspaceBytes,
       CUDNN_NON_DETERMINISTIC,
       CUDNN_FMA_MATH,
       {}},
      {same,
       CUDNN_STATUS_SUCCESS,
       2,
       kWorkspaceBytes,
       CUDNN_DETERMINISTIC,
       CUDNN_TENSOR_OP_MATH,
       {}},
      {same,
       CUDNN_STATUS_SUCCESS,
       3,
       kWorkspaceBytes,
       CUDNN_DETERMINISTIC,
       CUDNN_FMA_MATH,
       {}},
      {changing,
       CUDNN_STATUS_NOT_SUPPORTED,
       -1,
       0,
       CUDNN_DETERMINISTIC,
       CUDNN_DEFAULT_MATH,
       {}},
  };
  *found = std::min(wanted, 4);
  std::copy_n(all, *found, results);
  return CUDNN_STATUS_SUCCESS;
}

const float* Floats(const void* data) {
  return static_cast<const float*>(data);
}
float* Floats(void* data) { return static_cast<float*>(data); }

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

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensorDesc) {
  CUDNN_ENTER();
  *tensorDesc = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc) {
  CUDNN_ENTER();
  delete tensorDesc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t dataType, int n, int c,
                                         int h, int w) {
  CUDNN_ENTER();
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (format != CUDNN_TENSOR_NHWC || dataType != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *tensorDesc = {.n = n, .c = c, .h = h, .w = w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filterDesc) {
  CUDNN_ENTER();
  *filterDesc = new cudnnFilterStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc) {
  CUDNN_ENTER();
  delete filterDesc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w) {
  CUDNN_ENTER();
  if (k <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (format != CUDNN_TENSOR_NHWC || dataType != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *filterDesc = {.k = k, .c = c, .h = h, .w = w};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(
    cudnnConvolutionDescriptor_t* convDesc) {
  CUDNN_ENTER();
  *convDesc = new cudnnConvolutionStruct;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(
    cudnnConvolutionDescriptor_t convDesc) {
  CUDNN_ENTER();
  delete convDesc;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(
    cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v,
    int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
    cudnnDataType_t computeType) {
  CUDNN_ENTER();
  if (pad_h < 0 || pad_w < 0 || u <= 0 || v <= 0) return CUDNN_STATUS_BAD_PARAM;
  if (dilation_h != 1 || dilation_w != 1 || mode != CUDNN_CROSS_CORRELATION ||
      computeType != CUDNN_DATA_FLOAT) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  *convDesc = {.pad_h = pad_h, .pad_w = pad_w, .stride_h = u, .stride_w = v};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t mathType) {
  CUDNN_ENTER();
  convDesc->math = mathType;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
    const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  CUDNN_ENTER();
  return Find(Convolution{*xDesc, *yDesc, *wDesc, *convDesc}.Fits(),
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
              CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
              requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
    const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t dwDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  CUDNN_ENTER();
  return Find(Convolution{*xDesc, *dyDesc, *dwDesc, *convDesc}.Fits(),
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, requestedAlgoCount,
              returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc,
    const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t dxDesc, const int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  CUDNN_ENTER();
  return Find(Convolution{*dxDesc, *dyDesc, *wDesc, *convDesc}.Fits(),
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
              CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, requestedAlgoCount,
              returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
    const cudnnFilterDescriptor_t wDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t yDesc, cudnnConvolutionFwdAlgo_t algo,
    size_t* sizeInBytes) {
  CUDNN_ENTER();
  *sizeInBytes = kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
    const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnFilterDescriptor_t gradDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes) {
  CUDNN_ENTER();
  *sizeInBytes = kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t wDesc,
    const cudnnTensorDescriptor_t dyDesc,
    const cudnnConvolutionDescriptor_t convDesc,
    const cudnnTensorDescriptor_t dxDesc, cudnnConvolutionBwdDataAlgo_t algo,
    size_t* sizeInBytes) {
  CUDNN_ENTER();
  *sizeInBytes = kWorkspaceBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void* alpha,
    const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
    void* workSpace, size_t workSpaceSizeInBytes, const void* beta,
    const cudnnTensorDescriptor_t yDesc, void* y) {
  CUDNN_ENTER();
  const Convolution s = {*xDesc, *yDesc, *wDesc, *convDesc};
  return Start(s,
               {handle,
                alpha,
                beta,
                workSpace,
                workSpaceSizeInBytes,
                {{x, Bytes(*xDesc)}, {w, Bytes(*wDesc)}, {y, Bytes(*yDesc)}}},
               [=] { Forward(s, Floats(x), Floats(w), Floats(y)); });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* alpha,
    const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnTensorDescriptor_t dyDesc, const void* dy,
    const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace,
    size_t workSpaceSizeInBytes, const void* beta,
    const cudnnFilterDescriptor_t dwDesc, void* dw) {
  CUDNN_ENTER();
  const Convolution s = {*xDesc, *dyDesc, *dwDesc, *convDesc};
  return Start(
      s,
      {handle,
       alpha,
       beta,
       workSpace,
       workSpaceSizeInBytes,
       {{x, Bytes(*xDesc)}, {dy, Bytes(*dyDesc)}, {dw, Bytes(*dwDesc)}}},
      [=] { FilterGradient(s, Floats(x), Floats(dy), Floats(dw)); });
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* alpha,
    const cudnnFilterDescriptor_t wDesc, const void* w,
    const cudnnTensorDescriptor_t dyDesc, const void* dy,
    const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionBwdDataAlgo_t algo, void* workSpace,
    size_t workSpaceSizeInBytes, const void* beta,
    const cudnnTensorDescriptor_t dxDesc, void* dx) {
  CUDNN_ENTER();
  const Convolution s = {*dxDesc, *dyDesc, *wDesc, *convDesc};
  return Start(
      s,
      {handle,
       alpha,
       beta,
       workSpace,
       workSpaceSizeInBytes,
       {{w, Bytes(*wDesc)}, {dy, Bytes(*dyDesc)}, {dx, Bytes(*dxDesc)}}},
      [=] { InputGradient(s, Floats(w), Floats(dy), Floats(dx)); });
}
