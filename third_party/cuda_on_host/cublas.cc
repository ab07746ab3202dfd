// cuBLAS: products with sums in double.

#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "third_party/cuda_on_host/counts.h"
#include "third_party/cuda_on_host/memory.h"
#include "third_party/cuda_on_host/round.h"
#include "third_party/cuda_on_host/runtime.h"
#include "third_party/cuda_on_host/settings.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
};

namespace cuda_on_host {
namespace {

// A factor as it lies in memory: column after column, `leading` apart.
struct Factor {
  const void* data;
  cudaDataType type;
  int leading;
  bool transposed;

  size_t bytes(int rows, int columns) const {
    if (transposed) std::swap(rows, columns);
    const size_t element = type == CUDA_R_32F ? 4 : 2;
    return columns == 0 ? 0
                        : element * (size_t(leading) * (columns - 1) + rows);
  }
};

// Returns op(factor), row after row.
std::vector<float> Read(const Factor& f, int rows, int columns, bool tf32) {
  std::vector<float> values(size_t(rows) * columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const size_t at =
          f.transposed ? j + size_t(f.leading) * i : i + size_t(f.leading) * j;
      float value =
          f.type == CUDA_R_32F
              ? static_cast<const float*>(f.data)[at]
              : __bfloat162float(static_cast<const __nv_bfloat16*>(f.data)[at]);
      if (tf32) value = RoundToTf32(value);
      values[size_t(i) * columns + j] = value;
    }
  }
  return values;
}

struct Product {
  int m, n, k;
  Factor a, b;
  float* c;
  int ldc;
  bool tf32;

  void Check() const {
    if (!IsInside(a.data, a.bytes(m, k)) || !IsInside(b.data, b.bytes(k, n)) ||
        !IsInside(c, Bytes())) {
      Die("cublasGemmEx: a matrix does not lie in the device's memory");
    }
  }

  size_t Bytes() const { return sizeof(float) * (size_t(ldc) * (n - 1) + m); }

  void Compute() const {
    WatchRead(a.data, a.bytes(m, k));
    WatchRead(b.data, b.bytes(k, n));
    WatchWrite(c, Bytes());
    const std::vector<float> left = Read(a, m, k, tf32);
    const std::vector<float> right = Read(b, k, n, tf32);
    std::vector<double> row(n);
    for (int i = 0; i < m; ++i) {
      std::fill(row.begin(), row.end(), 0.0);
      for (int l = 0; l < k; ++l) {
        const double factor = left[size_t(i) * k + l];
        const float* const other = &right[size_t(l) * n];
        for (int j = 0; j < n; ++j) row[j] += factor * other[j];
      }
      for (int j = 0; j < n; ++j) {
        c[i + size_t(ldc) * j] = static_cast<float>(row[j]);
      }
    }
  }
};

bool IsLegal(const Factor& f, int rows, int columns) {
  return f.leading >= std::max(1, f.transposed ? columns : rows);
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

#define CUBLAS_ENTER()                                            \
  const std::lock_guard<std::recursive_mutex> lock(TheLock());    \
  if (IsLostFor(__func__)) return CUBLAS_STATUS_EXECUTION_FAILED; \
  if (const int fault = FaultOf(__func__)) return cublasStatus_t(fault)

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  CUBLAS_ENTER();
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  CUBLAS_ENTER();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  DemandAll(-1);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle,
                                  cudaStream_t streamId) {
  CUBLAS_ENTER();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = streamId;
  handle->has_workspace = false;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace,
                                     size_t workspaceSizeInBytes) {
  CUBLAS_ENTER();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0 ||
      !IsInside(workspace, workspaceSizeInBytes)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  handle->has_workspace = true;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  CUBLAS_ENTER();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return mode == CUBLAS_DEFAULT_MATH ? CUBLAS_STATUS_SUCCESS
                                     : CUBLAS_STATUS_INVALID_VALUE;
}

// Only c = a · b, in float32; without a workspace of the caller's not in a
// capture, where it would be allocated anew by each replay.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k,
                            const void* alpha, const void* A,
                            cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta,
                            void* C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo) {
  CUBLAS_ENTER();
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Product product = {.m = m,
                           .n = n,
                           .k = k,
                           .a = {A, Atype, lda, transa == CUBLAS_OP_T},
                           .b = {B, Btype, ldb, transb == CUBLAS_OP_T},
                           .c = static_cast<float*>(C),
                           .ldc = ldc,
                           .tf32 = computeType == CUBLAS_COMPUTE_32F_FAST_TF32};
  if (m < 0 || n < 0 || k < 0 || ldc < std::max(1, m) ||
      !cuda_on_host::IsLegal(product.a, m, k) ||
      !cuda_on_host::IsLegal(product.b, k, n)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (Atype != Btype || Ctype != CUDA_R_32F || algo != CUBLAS_GEMM_DEFAULT ||
      *static_cast<const float*>(alpha) != 1 ||
      *static_cast<const float*>(beta) != 0) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  if (!IsLive(handle->stream)) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (handle->stream->capture != nullptr && !handle->has_workspace) {
    Invalidate(handle->stream);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  ++cuda_on_host::TheCounts().library_calls;
  const cudaError_t error = Enqueue(handle->stream, Kind::kCompute, [product] {
    product.Check();
    product.Compute();
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                              : CUBLAS_STATUS_EXECUTION_FAILED;
}
