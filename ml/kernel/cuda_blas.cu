#include <cublas_v2.h>
#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/kernel/cuda_blas.h"

namespace parasol {
namespace {

// The functions used, typed by cuBLAS's own declarations.
struct Functions {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;
};

template <typename Function>
absl::Status Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cuBLAS has no function ", name));
}

// The library stays open as long as the process: it registers exit handlers.
absl::StatusOr<Functions> Load() {
  const std::string file = absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLAS cannot be opened: ", dlerror()));
  }
  Functions functions;
  RETURN_IF_ERROR(Find(library, "cublasCreate_v2", functions.create));
  RETURN_IF_ERROR(Find(library, "cublasDestroy_v2", functions.destroy));
  RETURN_IF_ERROR(Find(library, "cublasSetStream_v2", functions.set_stream));
  RETURN_IF_ERROR(Find(library, "cublasSetMathMode", functions.set_math_mode));
  RETURN_IF_ERROR(Find(library, "cublasSgemm_v2", functions.sgemm));
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

class LoadedBlas : public CudaBlas {
 public:
  explicit LoadedBlas(const Functions& functions) : functions_(functions) {}
  ~LoadedBlas() override {
    if (handle_ != nullptr) functions_.destroy(handle_);
  }

  absl::Status Start(CUstream_st* stream) {
    RETURN_IF_ERROR(Check(functions_.create(&handle_), "cublasCreate"));
    RETURN_IF_ERROR(
        Check(functions_.set_stream(handle_, stream), "cublasSetStream"));
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
    const cublasStatus_t status = functions_.sgemm(
        handle_, Operation(transpose_b), Operation(transpose_a),
        static_cast<int>(c.columns), static_cast<int>(c.rows),
        static_cast<int>(inner), &one, b.data, static_cast<int>(b.columns),
        a.data, static_cast<int>(a.columns), &zero, c.data,
        static_cast<int>(c.columns));
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    return Check(status, absl::StrCat("sgemm of ", c.rows, "x", inner, " by ",
                                      inner, "x", c.columns));
  }

 private:
  static cublasOperation_t Operation(Transpose transpose) {
    return transpose == Transpose::kYes ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  const Functions functions_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CudaBlas>> CudaBlas::Open(CUstream_st* stream) {
  ASSIGN_OR_RETURN(const Functions functions, Load());
  auto blas = std::make_unique<LoadedBlas>(functions);
  RETURN_IF_ERROR(blas->Start(stream));
  return blas;
}

}  // namespace parasol
