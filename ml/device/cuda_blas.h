#ifndef PARASOL_ML_DEVICE_CUDA_BLAS_H_
#define PARASOL_ML_DEVICE_CUDA_BLAS_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/matrix.h"
#include "ml/device/precision.h"

struct CUstream_st;

namespace parasol {

// cuBLAS, opened when it is first needed: linked, its 600 MB would be mapped by
// every process that may compute, half a second from a cold disk, and would
// have to be on machines without a GPU.
class CudaBlas {
 public:
  // For the calling thread's device; all work goes to `stream`. `releases`, of
  // the device, must outlive it.
  //   FailedPrecondition  the library is not on this machine: says where it was
  //                       looked for.
  static absl::StatusOr<std::unique_ptr<CudaBlas>> Open(CUstream_st* stream,
                                                        Precision precision,
                                                        uint64_t& releases);
  virtual ~CudaBlas() = default;

  // c = op(a) · op(b), where `a` and `b` are given as they lie in memory.
  // float32 but for the factors, which have the precision of Open().
  virtual absl::Status Multiply(MatrixView a, Transpose transpose_a,
                                MatrixView b, Transpose transpose_b,
                                MutableMatrixView c) = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_CUDA_BLAS_H_
