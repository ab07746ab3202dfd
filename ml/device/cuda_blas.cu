#include <cublas_v2.h>
#include <cuda_bf16.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/device/cuda_blas.h"
#include "ml/device/cuda_launch.h"
#include "ml/device/cuda_library.h"
#include "ml/device/cuda_scratch.h"

namespace parasol {
namespace {

// cuBLAS overloads this name in C++.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t,
                              cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, const void*,
                              cudaDataType, int, const void*, void*,
                              cudaDataType, int, cublasComputeType_t,
                              cublasGemmAlgo_t);
static_assert(sizeof(static_cast<GemmEx*>(&cublasGemmEx)) > 0);

// The functions used, typed by cuBLAS's own declarations.
struct Functions {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  GemmEx* gemm = nullptr;
};

absl::StatusOr<Functions> Load() {
  ASSIGN_OR_RETURN(const CudaLibrary library,
                   CudaLibrary::Open("cuBLAS", absl::StrCat("libcublas.so.",
                                                            CUBLAS_VER_MAJOR)));
  Functions functions;
  RETURN_IF_ERROR(library.Find("cublasCreate_v2", functions.create));
  RETURN_IF_ERROR(library.Find("cublasDestroy_v2", functions.destroy));
  RETURN_IF_ERROR(library.Find("cublasSetStream_v2", functions.set_stream));
  RETURN_IF_ERROR(
      library.Find("cublasSetWorkspace_v2", functions.set_workspace));
  RETURN_IF_ERROR(library.Find("cublasSetMathMode", functions.set_math_mode));
  RETURN_IF_ERROR(library.Find("cublasGemmEx", functions.gemm));
  return functions;
}

absl::Status Check(cublasStatus_t status, absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string words =
      absl::StrCat(what, ": cuBLAS status ", static_cast<int>(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED
             ? absl::ResourceExhaustedError(words)
             : absl::UnavailableError(words);
}

// Returns the size that NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before.
absl::StatusOr<size_t> WorkspaceBytes() {
  int device = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&device), "cudaGetDevice"));
  int major = 0;
  RETURN_IF_ERROR(CudaStatus(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
      "compute capability"));
  return size_t{major >= 9 ? 32u : 4u} << 20;
}

struct RoundedCopy {
  const float* from;
  __nv_bfloat16* to;
  __device__ void operator()(int64_t i) const {
    to[i] = __float2bfloat16_rn(from[i]);
  }
};

// The properties of a factor that cuBLAS reads.
struct Factor {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_32F;
};

class LoadedBlas : public CudaBlas {
 public:
  LoadedBlas(const Functions& functions, CUstream_st* stream,
             Precision precision, uint64_t& releases)
      : functions_(functions),
        stream_(stream),
        precision_(precision),
        workspace_(stream, releases),
        rounded_a_(stream, releases),
        rounded_b_(stream, releases) {}
  ~LoadedBlas() override {
    if (handle_ != nullptr) functions_.destroy(handle_);
  }

  // A workspace of ours, for cuBLAS would take memory for its own from the
  // stream, also in work that is recorded. Setting the stream forgets it.
  absl::Status Start() {
    RETURN_IF_ERROR(Check(functions_.create(&handle_), "cublasCreate"));
    RETURN_IF_ERROR(
        Check(functions_.set_stream(handle_, stream_), "cublasSetStream"));
    ASSIGN_OR_RETURN(const size_t bytes, WorkspaceBytes());
    ASSIGN_OR_RETURN(void* const workspace, workspace_.Reserve(bytes));
    RETURN_IF_ERROR(Check(functions_.set_workspace(handle_, workspace, bytes),
                          "cublasSetWorkspace"));
    return Check(functions_.set_math_mode(handle_, CUBLAS_DEFAULT_MATH),
                 "cublasSetMathMode");
  }

  // cuBLAS counts columns first: it sees our row-major c as its transpose, and
  // cᵀ = op(b)ᵀ · op(a)ᵀ, where bᵀ is how it sees b already. So the factors
  // change places and the transpositions stay.
  absl::Status Multiply(MatrixView a, Transpose transpose_a, MatrixView b,
                        Transpose transpose_b, MutableMatrixView c) override {
    const int64_t inner = transpose_a == Transpose::kNo ? a.columns : a.rows;
    const float one = 1;
    const float zero = 0;
    ASSIGN_OR_RETURN(const Factor left, FactorOf(a, rounded_a_));
    ASSIGN_OR_RETURN(const Factor right, FactorOf(b, rounded_b_));
    const cublasStatus_t status = functions_.gemm(
        handle_, Operation(transpose_b), Operation(transpose_a),
        static_cast<int>(c.columns), static_cast<int>(c.rows),
        static_cast<int>(inner), &one, right.data, right.type,
        static_cast<int>(b.columns), left.data, left.type,
        static_cast<int>(a.columns), &zero, c.data, CUDA_R_32F,
        static_cast<int>(c.columns), ComputeType(), CUBLAS_GEMM_DEFAULT);
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return Check(status, absl::StrCat("product of ", c.rows, "x", inner, " by ",
                                      inner, "x", c.columns));
  }

 private:
  static cublasOperation_t Operation(Transpose transpose) {
    return transpose == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  cublasComputeType_t ComputeType() const {
    return precision_ == Precision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                          : CUBLAS_COMPUTE_32F;
  }

  absl::StatusOr<Factor> FactorOf(MatrixView m, CudaScratch& rounded) {
    if (precision_ != Precision::kBfloat16) return Factor{m.data, CUDA_R_32F};
    ASSIGN_OR_RETURN(void* const memory,
                     rounded.Reserve(m.size() * sizeof(__nv_bfloat16)));
    RETURN_IF_ERROR(cuda::ForEach(
        stream_, "rounding to bfloat16", m.size(),
        RoundedCopy{m.data, static_cast<__nv_bfloat16*>(memory)}));
    return Factor{memory, CUDA_R_16BF};
  }

  const Functions functions_;
  CUstream_st* const stream_;
  const Precision precision_;
  cublasHandle_t handle_ = nullptr;
  CudaScratch workspace_;
  CudaScratch rounded_a_;
  CudaScratch rounded_b_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBlas>> CudaBlas::Open(CUstream_st* stream,
                                                         Precision precision,
                                                         uint64_t& releases) {
  ASSIGN_OR_RETURN(const Functions functions, Load());
  auto blas =
      std::make_unique<LoadedBlas>(functions, stream, precision, releases);
  RETURN_IF_ERROR(blas->Start());
  return blas;
}

}  // namespace parasol
